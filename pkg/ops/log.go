package ops

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/tracing"
)

// NewLogger returns a logger that writes JSON lines to w, each with the service's name and the request and trace ids of
// its context. If w has a Flush method, as a [Buffer] has, warnings and errors are flushed immediately.
func NewLogger(w io.Writer, service string, level slog.Leveler) *slog.Logger {
	var h slog.Handler = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	if f, ok := w.(flusher); ok {
		h = flushingHandler{Handler: h, to: f}
	}
	return slog.New(tracing.Handler(h)).With("service", service)
}

type flusher interface{ Flush() error }

// flushingHandler flushes important records immediately: they may be the process's last.
type flushingHandler struct {
	slog.Handler
	to flusher
}

// Handle implements slog.Handler.
func (h flushingHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		if flushErr := h.to.Flush(); err == nil {
			err = flushErr
		}
	}
	return err
}

// WithAttrs implements slog.Handler.
func (h flushingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return flushingHandler{Handler: h.Handler.WithAttrs(attrs), to: h.to}
}

// WithGroup implements slog.Handler.
func (h flushingHandler) WithGroup(name string) slog.Handler {
	return flushingHandler{Handler: h.Handler.WithGroup(name), to: h.to}
}

const (
	flushAfter = 250 * time.Millisecond
	flushSize  = 32 << 10
)

// Buffer batches writes, so that an access log under load costs a system call every few hundred lines instead of one
// each. A write is flushed after at most a quarter of a second, or when the buffer is full; a crash may lose that much.
// A slow writer blocks callers instead of growing the buffer. It is safe for concurrent use.
type Buffer struct {
	mu      sync.Mutex // guards pending and timer
	pending []byte
	timer   *time.Timer // nil: nothing is pending

	writing sync.Mutex // held while spare is written; taken before mu
	spare   []byte
	to      io.Writer
}

// NewBuffer returns a buffer in front of w.
func NewBuffer(w io.Writer) *Buffer { return &Buffer{to: w} }

// Write implements [io.Writer]. An error of the underlying writer is reported by the call that flushes.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	b.pending = append(b.pending, p...)
	full := len(b.pending) >= flushSize
	if b.timer == nil {
		b.timer = time.AfterFunc(flushAfter, func() { _ = b.Flush() })
	}
	b.mu.Unlock()
	if full {
		return len(p), b.Flush()
	}
	return len(p), nil
}

// Flush writes what is pending. A Buffer that is no longer used must be flushed once.
func (b *Buffer) Flush() error {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	b.pending, b.spare = b.spare[:0], b.pending
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	b.mu.Unlock()
	if len(b.spare) == 0 {
		return nil
	}
	_, err := b.to.Write(b.spare)
	return err
}
