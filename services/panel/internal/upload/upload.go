// Package upload stores the files that agents send, in the store of visitors' files, and builds the data of their messages.
package upload

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
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
	BaseURL   string        // of the Widget API, which serves the files
	MaxBytes  int64         // of one file
	Retention time.Duration // default for applications without one; zero: unlimited
	Now       func() time.Time
}

// Kept is a stored file.
type Kept struct {
	file.File
	Type   chat.MessageType
	Digest string // SHA-256 of the content in hex
	kind   file.Kind
	base   string
}

var errTooLarge = apperr.PayloadTooLarge.WithMessage("The file is too large")

// Keep stores a file for a chat. Errors: Invalid for one that is empty or larger than MaxBytes, Unavailable.
func (s *Service) Keep(ctx context.Context, c chat.Chat, app chat.Application, name, declaredType string, content io.Reader) (Kept, error) {
	head := make([]byte, file.SniffLength)
	n, err := file.Fill(content, head)
	if err != nil && !file.Ended(err) {
		return Kept{}, fmt.Errorf("reading a file: %w", err)
	}
	if n == 0 {
		return Kept{}, apperr.Fields{{Name: "file", Message: "must not be empty"}}.Err()
	}
	rest := content
	if file.Ended(err) {
		rest = strings.NewReader("")
	}
	kind := file.KindOf(head[:n], declaredType)
	retention := s.Retention
	if app.FileRetention > 0 {
		retention = app.FileRetention
	}
	var expires time.Time
	if retention > 0 {
		expires = s.Now().Add(retention)
	}
	digest := sha256.New()
	all := &limited{r: io.TeeReader(io.MultiReader(bytes.NewReader(head[:n]), rest), digest), left: s.MaxBytes}
	stored, err := s.Store.Put(ctx, file.File{
		ID: file.NewID(expires), AppID: c.AppID, Name: file.CleanName(name, kind), ContentType: kind.ContentType,
	}, all)
	if errors.Is(err, errTooLarge) {
		return Kept{}, errTooLarge
	}
	if err != nil {
		return Kept{}, err
	}
	k := Kept{File: stored, Type: kind.Type, Digest: hex.EncodeToString(digest.Sum(nil)), kind: kind, base: strings.TrimSuffix(s.BaseURL, "/")}
	err = s.Records.PutFile(ctx, chat.StoredFile{
		ID: stored.ID, CompanyID: c.CompanyID, AppID: c.AppID, ChatUserID: c.ChatUserID, Size: stored.Size, CreatedAt: s.Now(), ExpiresAt: file.ExpiryOf(stored.ID),
	})
	if err != nil {
		return Kept{}, errors.Join(err, s.Store.Delete(ctx, stored.ID))
	}
	return k, nil
}

// Discard removes a file that no message names.
func (s *Service) Discard(ctx context.Context, k Kept) error {
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

// Data returns the data of a message with the file (spec, "Observed data fields").
func (k Kept) Data(caption string) (json.RawMessage, error) {
	path := "/files/" + k.ID + "/" + url.PathEscape(k.Name)
	return json.Marshal(map[string]any{
		"url": k.base + path, "mime": k.kind.Mime, "path": path, "size": k.Size, "caption": caption, "fileName": k.Name,
		"extension": cmp.Or(k.kind.Extension, file.ExtensionOf(k.Name)),
	})
}
