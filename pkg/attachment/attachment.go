// Package attachment stores the files of visitors and agents, serves them, and removes them when they expire.
// It owns what they may cost, so that each service that takes files has the same bounds: slots.go bounds the
// uploads and downloads at once, quota.go the bytes that stay stored, share.go divides the store. A file can
// only be stored through an [Upload], which holds a slot.
package attachment

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/notice"
	"github.com/parley-chat/parley/pkg/slot"
)

// Config holds the dependencies of a [Service].
type Config struct {
	Store     file.Store
	Records   Records
	Quota     Quota
	AtOnce    AtOnce
	Retention time.Duration // default for applications without one; zero: unlimited
	Notices   *notice.Board // tells a company that its files are refused; nil: nobody is told
	Timeout   time.Duration // of storing one file
	Sweep     time.Duration // interval between two sweeps of expired files
	Logger    *slog.Logger
	Now       func() time.Time
}

// Service stores the files of all visitors and agents.
type Service struct {
	cfg       Config
	quotas    *quotas
	uploads   slot.Line
	downloads slot.Line
}

// New returns the service; [Service.Run] removes expired files.
func New(cfg Config) *Service {
	return &Service{
		cfg: cfg, quotas: newQuotas(cfg),
		uploads: newLine(int64(cfg.AtOnce.All)), downloads: newLine(downloadsAtOnce),
	}
}

// Incoming is a file that is being uploaded.
type Incoming struct {
	Name         string // as declared by the sender
	DeclaredType string // as declared by the sender; may be empty
	MaxSize      int64  // maximum in bytes
	Content      io.Reader
}

// Keep stores a file for the application's retention. It returns Invalid for a file that is empty, does not
// match its declared type, or exceeds the quota of the visitor, the application or the company or the share
// of its origin (FILE_QUOTA_EXCEEDED, before the file is read), Unavailable with FILE_STORE_FULL if the rest
// of the store is reserved for others, and otherwise the error of in.Content. After an error nothing is
// stored.
func (u *Upload) Keep(ctx context.Context, app chat.Application, in Incoming) (file.Kept, error) {
	s, record := u.service, u.sender.record()
	record.ID = file.NewID(file.Expiry(app, s.cfg.Retention, s.cfg.Now()))
	record.Size, record.CreatedAt = in.MaxSize, s.cfg.Now()
	if err := s.quotas.reserve(ctx, record, s.cfg.Timeout); err != nil {
		return file.Kept{}, err
	}
	reserved := record
	kept, err := s.keep(ctx, record, in)
	if err != nil {
		s.quotas.release(ctx, record)
		return file.Kept{}, err
	}
	record.Size, record.ExpiresAt = kept.Size, file.ExpiryOf(record.ID)
	if err := s.quotas.settle(ctx, record, in.MaxSize); err != nil {
		s.quotas.release(ctx, reserved)
		s.discard(ctx, kept)
		return file.Kept{}, err
	}
	return kept, nil
}

func (s *Service) keep(ctx context.Context, record chat.StoredFile, in Incoming) (file.Kept, error) {
	kind, content, err := file.Sniff(in.Content, in.DeclaredType)
	if err != nil {
		return file.Kept{}, err
	}
	if kind.Contradicts(in.DeclaredType) {
		return file.Kept{}, mismatch(kind)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	f := file.File{ID: record.ID, AppID: record.AppID, Name: in.Name}
	kept, err := file.Keep(ctx, s.cfg.Store, f, kind, content)
	if errors.Is(err, context.DeadlineExceeded) { // the store's timeout: the sender has its own
		err = apperr.Unreachable("file store", err)
	}
	return kept, err
}

func mismatch(k file.Kind) error {
	e := apperr.FileTypeMismatch.New()
	message := "is declared as something else than its content, which is " + k.Mime
	e.Fields = apperr.Fields{{Name: "file", Message: message}}
	return e
}

// Discard removes a file that no message names, also after its sender has disconnected. If that fails the
// file stays until it expires; its address is unknown to everyone.
func (u *Upload) Discard(ctx context.Context, k file.Kept) {
	u.service.discard(ctx, k)
	record := u.sender.record()
	record.ID, record.Size = k.ID, k.Size
	u.service.quotas.forget(ctx, record)
}

func (s *Service) discard(ctx context.Context, k file.Kept) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if err := s.cfg.Store.Delete(ctx, k.ID); err != nil {
		// The log has neither the name nor the id of the file: the id opens it.
		s.cfg.Logger.ErrorContext(ctx, "removing a file without a message failed, it stays until it expires",
			"contentType", k.Kind.ContentType, "size", k.Size, "error", err)
	}
}

const discardTimeout = 10 * time.Second

// find returns the file with that id and name, or NotFound, also for an expired one.
func (s *Service) find(ctx context.Context, id, name string) (file.File, file.Content, error) {
	if file.Expired(id, s.cfg.Now()) {
		return file.File{}, nil, file.NotFound()
	}
	f, content, err := s.cfg.Store.Open(ctx, id)
	if err != nil {
		return file.File{}, nil, err
	}
	if f.Name != name { // otherwise a URL could give a file another name
		return file.File{}, nil, file.NotFound()
	}
	return f, content, nil
}

// Run removes expired files and the remains of broken uploads until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	for {
		s.sweep(ctx)
		pause := s.cfg.Sweep + rand.N(s.cfg.Sweep/10+1) // jitter, so that replicas do not sweep at the same time
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (s *Service) sweep(ctx context.Context) {
	swept, err := s.cfg.Store.Sweep(ctx, s.cfg.Now())
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.cfg.Logger.WarnContext(ctx, "sweeping expired files failed", "error", err)
	case swept != file.Swept{}:
		s.cfg.Logger.InfoContext(ctx, "files removed", "expired", swept.Expired, "abandoned", swept.Orphans)
	}
}
