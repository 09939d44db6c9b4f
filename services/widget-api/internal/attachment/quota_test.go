package attachment_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/widget-api/internal/attachment"
)

// ledger stores the records of files in memory.
type ledger struct {
	mu    sync.Mutex
	files map[string]chat.StoredFile
	sums  int // how often an application's sum was read
	fail  error
}

func (l *ledger) PutFile(_ context.Context, f chat.StoredFile) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = map[string]chat.StoredFile{}
	}
	if l.fail != nil && !strings.HasPrefix(f.ID, "upload-") {
		return l.fail
	}
	l.files[f.ID] = f
	return nil
}

func (l *ledger) DeleteFile(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.files, id)
	return nil
}

func (l *ledger) sum(now time.Time, of func(chat.StoredFile) bool) (u store.FileUsage, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		if of(f) && (f.ExpiresAt.IsZero() || now.Before(f.ExpiresAt)) {
			u.Bytes, u.Count = u.Bytes+f.Size, u.Count+1
		}
	}
	return u, nil
}

func (l *ledger) VisitorFiles(_ context.Context, id string, now time.Time) (store.FileUsage, error) {
	return l.sum(now, func(f chat.StoredFile) bool { return f.ChatUserID == id })
}

func (l *ledger) ApplicationFiles(_ context.Context, id string, now time.Time) (store.FileUsage, error) {
	l.sums++
	return l.sum(now, func(f chat.StoredFile) bool { return f.AppID == id })
}

// bytes returns the sum of the records that have not expired.
func (l *ledger) bytes() int64 {
	u, _ := l.sum(time.Now(), func(chat.StoredFile) bool { return true })
	return u.Bytes
}

func limited(l *ledger, q attachment.Quota, s *broken) *attachment.Service {
	return attachment.New(attachment.Config{
		Store: s, Records: l, Quota: q, Retention: 24 * time.Hour, Timeout: time.Minute, Sweep: time.Hour,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	})
}

func keep(t *testing.T, s *attachment.Service, app, visitor string, content io.Reader, size int64) (file.Kept, string) {
	t.Helper()
	kept, err := s.Keep(t.Context(), chat.Application{ID: app}, visitor, attachment.Incoming{Content: content, MaxSize: size})
	if err == nil {
		return kept, ""
	}
	return kept, apperr.ReasonOf(err)
}

// text returns a reader of n bytes.
func text(n int) io.Reader { return strings.NewReader(strings.Repeat("x", n)) }

func TestQuotas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := new(ledger)
		s := limited(l, attachment.Quota{Visitor: 100, Application: 150}, &broken{})
		first, refused := keep(t, s, "app", "a", text(60), 60)
		if refused != "" {
			t.Fatalf("got %s, want room for the first", refused)
		}
		const full = "FILE_QUOTA_EXCEEDED"
		if _, refused := keep(t, s, "app", "a", iotest.ErrReader(errors.New("was read")), 41); refused != full {
			t.Errorf("the visitor's quota: got %q, want %s before anything is read", refused, full)
		}
		if _, refused := keep(t, s, "app", "b", text(80), 80); refused != "" {
			t.Errorf("another visitor: got %s, want room", refused)
		}
		if _, refused := keep(t, s, "app", "c", iotest.ErrReader(errors.New("was read")), 20); refused != full {
			t.Errorf("the application's quota: got %q, want %s", refused, full)
		}
		if _, refused := keep(t, s, "other", "d", text(100), 100); refused != "" {
			t.Errorf("another application: got %s, want room", refused)
		}
		if l.sums != 2 {
			t.Errorf("got %d sums read, want one for each application", l.sums)
		}
		s.Discard(t.Context(), first)
		if _, refused := keep(t, s, "app", "c", text(60), 60); refused != "" {
			t.Errorf("after a file was discarded: got %s, want room", refused)
		}
		time.Sleep(25 * time.Hour)
		if _, refused := keep(t, s, "app", "a", text(100), 100); refused != "" || l.bytes() != 100 {
			t.Errorf("when all has expired: got %q and %d bytes, want room", refused, l.bytes())
		}
	})
}

// A failed upload releases its quota, and the reservation of a crash expires.
func TestQuotaIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := new(ledger)
		for name, s := range map[string]*attachment.Service{
			"the store fails":  limited(l, attachment.Quota{Visitor: 100, Application: 100}, &broken{err: errors.New("away")}),
			"the store hangs":  limited(l, attachment.Quota{Visitor: 100, Application: 100}, &broken{hangs: true}),
			"the sender fails": limited(l, attachment.Quota{Visitor: 100, Application: 100}, &broken{}),
		} {
			content := text(90)
			if name == "the sender fails" {
				content = io.MultiReader(text(10), iotest.ErrReader(errors.New("broken line")))
			}
			if _, reason := keep(t, s, "app", "a", content, 90); reason == "" || l.bytes() != 0 {
				t.Errorf("%s: got %q and %d bytes that count, want an error and none", name, reason, l.bytes())
			}
		}
		l.fail = errors.New("away")
		s := limited(l, attachment.Quota{Visitor: 100, Application: 100}, &broken{})
		if _, reason := keep(t, s, "app", "a", text(90), 90); reason == "" || l.bytes() != 0 {
			t.Errorf("the record fails: got %q and %d bytes that count, want an error and none", reason, l.bytes())
		}
		l.fail = nil
		l.files["upload-crashed"] = chat.StoredFile{ID: "upload-crashed", AppID: "app", ChatUserID: "a", Size: 90, ExpiresAt: time.Now().Add(2 * time.Minute)}
		time.Sleep(3 * time.Minute)
		if _, refused := keep(t, s, "app", "a", text(90), 90); refused != "" {
			t.Errorf("after a crash: got %s, want room again", refused)
		}
	})
}

// Concurrent uploads never exceed the quota.
func TestQuotaOfConcurrentUploads(t *testing.T) {
	t.Parallel()
	l := new(ledger)
	s := limited(l, attachment.Quota{Application: 100}, &broken{})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			_, _ = s.Keep(t.Context(), chat.Application{ID: "app"}, "a", attachment.Incoming{Content: text(30), MaxSize: 30})
		})
	}
	group.Wait()
	if got := l.bytes(); got > 100 {
		t.Errorf("got %d bytes kept, want at most 100", got)
	}
}
