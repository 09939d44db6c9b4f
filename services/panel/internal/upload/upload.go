// Package upload stores the files that agents send, in the store of visitors' files.
package upload

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
)

// Records stores the records of files.
type Records interface {
	PutFile(ctx context.Context, f chat.StoredFile) error
	DeleteFile(ctx context.Context, id string) error
}

// Service stores files. It is safe for concurrent use.
type Service struct {
	Store     file.Store
	Records   Records
	MaxBytes  int64         // of one file
	Retention time.Duration // default for applications without one; zero: unlimited
	Now       func() time.Time
}

var errTooLarge = apperr.PayloadTooLarge.WithMessage("The file is too large")

// Keep stores a file for a chat. Errors: Invalid for one that is empty or larger than MaxBytes, Unavailable.
func (s *Service) Keep(ctx context.Context, c chat.Chat, app chat.Application, name, declaredType string, content io.Reader) (file.Kept, error) {
	kept, err := s.store(ctx, app, file.File{AppID: c.AppID, Name: name}, declaredType, &limited{r: content, left: s.MaxBytes})
	if errors.Is(err, errTooLarge) {
		return file.Kept{}, errTooLarge
	}
	if err != nil {
		return file.Kept{}, err
	}
	err = s.Records.PutFile(ctx, chat.StoredFile{
		ID: kept.ID, CompanyID: c.CompanyID, AppID: c.AppID, ChatUserID: c.ChatUserID, Size: kept.Size, CreatedAt: s.Now(), ExpiresAt: file.ExpiryOf(kept.ID),
	})
	if err != nil {
		return file.Kept{}, errors.Join(err, s.Store.Delete(ctx, kept.ID))
	}
	return kept, nil
}

func (s *Service) store(ctx context.Context, app chat.Application, f file.File, declaredType string, content io.Reader) (file.Kept, error) {
	kind, content, err := file.Sniff(content, declaredType)
	if err != nil {
		return file.Kept{}, err
	}
	f.ID = file.NewID(file.Expiry(app, s.Retention, s.Now()))
	return file.Keep(ctx, s.Store, f, kind, content)
}

// Discard removes a file that no message names.
func (s *Service) Discard(ctx context.Context, k file.Kept) error {
	return errors.Join(s.Store.Delete(ctx, k.ID), s.Records.DeleteFile(ctx, k.ID))
}

// limited is a reader that fails with errTooLarge after a number of bytes.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
