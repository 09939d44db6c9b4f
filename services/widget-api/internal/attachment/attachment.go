// Package attachment stores the files of visitors' messages, serves them, and removes them when they expire. data.go builds the
// data of a message with a file.
package attachment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
)

// Config holds the dependencies of a [Service].
type Config struct {
	Store     file.Store
	Records   Records
	Quota     Quota
	Retention time.Duration // default for applications without one; zero: unlimited
	Timeout   time.Duration // of storing one file
	Sweep     time.Duration // interval between two sweeps of expired files
	Logger    *slog.Logger
	Now       func() time.Time
}

// Service stores the files of all visitors.
type Service struct {
	cfg    Config
	quotas *quotas
}

// New returns the service; [Service.Run] removes expired files.
func New(cfg Config) *Service {
	return &Service{cfg: cfg, quotas: newQuotas(cfg.Records, cfg.Quota, cfg.Now)}
}

// Incoming is a file that is being uploaded.
type Incoming struct {
	Name         string // as declared by the sender
	DeclaredType string // as declared by the sender; may be empty
	MaxSize      int64  // maximum in bytes
	Content      io.Reader
}

// Kept is a stored file.
type Kept struct {
	file.File
	Kind   file.Kind
	Digest string // SHA-256 of the content in hex, to recognise a repeated upload
}

// Keep stores a visitor's file for the application's retention. It returns Invalid for a file that is empty, does not match its
// declared type, or exceeds the quota of the visitor or the application (FILE_QUOTA_EXCEEDED, before the file is read), and
// otherwise the error of in.Content. After an error nothing is stored.
func (s *Service) Keep(ctx context.Context, app chat.Application, chatUserID string, in Incoming) (Kept, error) {
	record := chat.StoredFile{
		ID: file.NewID(s.expiry(app)), CompanyID: app.CompanyID, AppID: app.ID, ChatUserID: chatUserID, Size: in.MaxSize, CreatedAt: s.cfg.Now(),
	}
	if err := s.quotas.reserve(ctx, record, s.cfg.Timeout); err != nil {
		return Kept{}, err
	}
	kept, err := s.keep(ctx, record.ID, app, in)
	if err != nil {
		s.quotas.release(ctx, record)
		return Kept{}, err
	}
	record.Size, record.ExpiresAt = kept.Size, file.ExpiryOf(record.ID)
	if err := s.quotas.settle(ctx, record, in.MaxSize); err != nil {
		s.quotas.release(ctx, chat.StoredFile{ID: record.ID, AppID: app.ID, Size: in.MaxSize})
		s.discard(ctx, kept)
		return Kept{}, err
	}
	return kept, nil
}

func (s *Service) keep(ctx context.Context, id string, app chat.Application, in Incoming) (Kept, error) {
	head := make([]byte, file.SniffLength)
	n, err := file.Fill(in.Content, head)
	if err != nil && !file.Ended(err) {
		return Kept{}, fmt.Errorf("reading a file: %w", err)
	}
	if n == 0 {
		return Kept{}, apperr.Fields{{Name: "file", Message: "must not be empty"}}.Err()
	}
	kind := file.KindOf(head[:n], in.DeclaredType)
	if kind.Contradicts(in.DeclaredType) {
		return Kept{}, mismatch(kind)
	}
	return s.store(ctx, kind, file.File{
		ID: id, AppID: app.ID, Name: file.CleanName(in.Name, kind), ContentType: kind.ContentType,
	}, &replay{head: head[:n], rest: in.Content, ended: file.Ended(err)})
}

func (s *Service) store(ctx context.Context, kind file.Kind, f file.File, content io.Reader) (Kept, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	digest := sha256.New()
	stored, err := s.cfg.Store.Put(ctx, f, io.TeeReader(content, digest))
	if errors.Is(err, context.DeadlineExceeded) { // the store's timeout: the sender has its own
		err = apperr.Unreachable("file store", err)
	}
	if err != nil {
		return Kept{}, err
	}
	return Kept{File: stored, Kind: kind, Digest: hex.EncodeToString(digest.Sum(nil))}, nil
}

func (s *Service) expiry(app chat.Application) time.Time {
	retention := s.cfg.Retention
	if app.FileRetention > 0 {
		retention = app.FileRetention
	}
	if retention <= 0 {
		return time.Time{}
	}
	return s.cfg.Now().Add(retention)
}

func mismatch(k file.Kind) error {
	e := apperr.FileTypeMismatch.New()
	e.Fields = apperr.Fields{{Name: "file", Message: "is declared as something else than its content, which is " + k.Mime}}
	return e
}

// replay reads the sniffed beginning, then the rest. A reader that has ended is not read again.
type replay struct {
	head  []byte
	rest  io.Reader
	ended bool
}

func (r *replay) Read(p []byte) (int, error) {
	if len(r.head) > 0 {
		n := copy(p, r.head)
		r.head = r.head[n:]
		return n, nil
	}
	if r.ended {
		return 0, io.EOF
	}
	return r.rest.Read(p)
}

// Discard removes a file that no message names, also after its sender has disconnected. If that fails the file stays until it
// expires; its address is unknown to everyone.
func (s *Service) Discard(ctx context.Context, k Kept) {
	s.discard(ctx, k)
	s.quotas.forget(ctx, k.ID, k.AppID, k.Size)
}

func (s *Service) discard(ctx context.Context, k Kept) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if err := s.cfg.Store.Delete(ctx, k.ID); err != nil {
		s.cfg.Logger.ErrorContext(ctx, "removing a file without a message failed, it stays until it expires", "name", k.Name, "size", k.Size, "error", err)
	}
}

const discardTimeout = 10 * time.Second

// Find returns the file with that id and name, or NotFound, also for an expired one.
func (s *Service) Find(ctx context.Context, id, name string) (file.File, file.Content, error) {
	if !file.ValidID(id) || file.Expired(id, s.cfg.Now()) {
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
