package attachment_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broken is a store whose operations may fail.
type broken struct {
	capacity int64
	used     int64 // bytes of the files that were put

	err    error
	hangs  bool
	mu     sync.Mutex
	swept  int
	stored string
}

func (b *broken) Put(ctx context.Context, f file.File, content io.Reader) (file.File, error) {
	if b.hangs {
		<-ctx.Done()
		return f, ctx.Err()
	}
	text, err := io.ReadAll(content)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored, f.Size = string(text), int64(len(text))
	b.used += f.Size
	return f, errors.Join(err, b.err)
}

func (b *broken) Open(context.Context, string) (file.File, file.Content, error) {
	return file.File{}, nil, b.err
}

func (b *broken) Space(context.Context) (file.Space, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return file.Space{Capacity: b.capacity, Used: b.used}, nil
}

func (b *broken) Delete(context.Context, string) error { return b.err }

func (b *broken) Sweep(context.Context, time.Time) (file.Swept, error) {
	b.swept++
	return file.Swept{}, b.err
}

func service(s file.Store, log io.Writer) *attachment.Service {
	return attachment.New(attachment.Config{
		Store: s, Records: new(ledger), AtOnce: attachment.AtOnce{All: 8}, Timeout: time.Minute, Sweep: time.Hour, Logger: slog.New(slog.NewTextHandler(log, nil)), Now: time.Now,
	})
}

// A store that hangs is Unavailable: neither our fault nor the sender's.
func TestKeepInAHangingStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := begin(t, service(&broken{hangs: true}, io.Discard), "app", "visitor").Keep(t.Context(), chat.Application{}, attachment.Incoming{Content: strings.NewReader("x")})
		if !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("got %v, want Unavailable", err)
		}
	})
}

// A failed discard is logged, without the secret id of the file and its name, which the visitor chose.
func TestFailedDiscard(t *testing.T) {
	t.Parallel()
	log, id := new(bytes.Buffer), file.NewID(time.Time{})
	begin(t, service(&broken{err: errors.New("away")}, log), "app", "visitor").Discard(t.Context(), file.Kept{File: file.File{ID: id, Name: "a.png"}})
	if !strings.Contains(log.String(), "away") || strings.Contains(log.String(), "a.png") || strings.Contains(log.String(), id) {
		t.Errorf("got the log %q, want the error without name and id", log)
	}
}

// Sweeping continues after a failure and ends with its context.
func TestRunSweepsRepeatedly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broken{err: errors.New("away")}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- service(b, io.Discard).Run(ctx) }()
		time.Sleep(5 * time.Hour)
		cancel()
		if err := <-done; err != nil || b.swept < 4 || b.swept > 6 {
			t.Errorf("got %d sweeps in five hours, %v, want about one an hour", b.swept, err)
		}
	})
}
