package attachment_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/store"
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
	runtime.Gosched() // another upload may be stored before this one is counted
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

func (l *ledger) FileUsage(_ context.Context, of store.FileOwner, now time.Time) (store.FileUsage, error) {
	if of.Application != "" {
		l.sums++
	}
	return l.sum(now, func(f chat.StoredFile) bool {
		owners := []store.FileOwner{{Sender: f.SenderID}, {Address: f.Address}, {Application: f.AppID}, {Company: f.CompanyID}}
		return slices.Contains(owners, of)
	})
}

// bytes returns the sum of the records that have not expired.
func (l *ledger) bytes() int64 {
	u, _ := l.sum(time.Now(), func(chat.StoredFile) bool { return true })
	return u.Bytes
}

const kib = 1 << 10

// limited returns a service with a quota in KiB.
func limited(l *ledger, q attachment.Quota, s *broken) *attachment.Service {
	q.Visitor, q.Application, q.Company = q.Visitor*kib, q.Application*kib, q.Company*kib
	return attachment.New(attachment.Config{
		Store: s, Records: l, Quota: q, AtOnce: attachment.AtOnce{All: 64}, Retention: 24 * time.Hour, Timeout: time.Minute, Sweep: time.Hour,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	})
}

// begin takes the slot of an upload of a visitor; companies have one application each.
func begin(t *testing.T, s *attachment.Service, app, visitor string) *attachment.Upload {
	t.Helper()
	u, err := s.Begin(t.Context(), attachment.Sender{CompanyID: "company of " + app, AppID: app, ChatUserID: visitor, ID: visitor, Address: "a"})
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return u
}

// keep stores a file of that many KiB.
func keep(t *testing.T, s *attachment.Service, app, visitor string, content io.Reader, size int64) (file.Kept, string) {
	t.Helper()
	u := begin(t, s, app, visitor)
	defer u.End()
	kept, err := u.Keep(t.Context(), chat.Application{ID: app}, attachment.Incoming{Content: content, MaxSize: size * kib})
	if err == nil {
		return kept, ""
	}
	return kept, apperr.ReasonOf(err)
}

// text returns a reader of n KiB.
func text(n int) io.Reader { return strings.NewReader(strings.Repeat("x", n*kib)) }

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
		if _, refused := keep(t, s, "other", "d", text(99), 99); refused != "" {
			t.Errorf("another application: got %s, want room", refused)
		}
		if l.sums != 2 {
			t.Errorf("got %d sums read, want one for each application", l.sums)
		}
		begin(t, s, "app", "a").Discard(t.Context(), first)
		if _, refused := keep(t, s, "app", "c", text(60), 60); refused != "" {
			t.Errorf("after a file was discarded: got %s, want room", refused)
		}
		time.Sleep(25 * time.Hour)
		if _, refused := keep(t, s, "app", "a", text(99), 99); refused != "" || l.bytes() != 99*kib {
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
		l.files["upload-crashed"] = chat.StoredFile{ID: "upload-crashed", AppID: "app", ChatUserID: "a", Size: 90 * kib, ExpiresAt: time.Now().Add(2 * time.Minute)}
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
			_, _ = begin(t, s, "app", "a").Keep(t.Context(), chat.Application{ID: "app"}, attachment.Incoming{Content: text(30), MaxSize: 30 * kib})
		})
	}
	group.Wait()
	if got := l.bytes(); got > 100*kib {
		t.Errorf("got %d bytes kept, want at most 100 KiB", got)
	}
}

// Concurrent uploads that fit are all stored: none counts twice, whichever reads the sum.
func TestConcurrentUploadsCountOnce(t *testing.T) {
	t.Parallel()
	const uploads, size = 8, 30
	for range 50 {
		s := limited(new(ledger), attachment.Quota{Application: uploads * (size + 1)}, &broken{})
		var group sync.WaitGroup
		for range uploads {
			group.Go(func() {
				if _, refused := keep(t, s, "app", "a", text(size), size); refused != "" {
					t.Errorf("got %s, want it stored", refused)
				}
			})
		}
		group.Wait()
	}
}

// An agent's files do not count for the visitor of the chat, but for the application and the company.
func TestQuotasOfAgentsAndCompanies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := limited(new(ledger), attachment.Quota{Visitor: 50, Application: 102, Company: 153}, &broken{})
		for _, c := range []struct {
			app, sender string
			size        int
			want        string
		}{
			{"one", "agent", 60, ""}, {"one", "visitor", 40, ""}, {"one", "agent", 1, "FILE_QUOTA_EXCEEDED"}, {"two", "agent", 50, ""},
			{"two", "visitor", 1, "FILE_QUOTA_EXCEEDED"},
		} {
			u, err := s.Begin(t.Context(), attachment.Sender{CompanyID: "company", AppID: c.app, ChatUserID: "visitor", ID: c.sender})
			if err != nil {
				t.Fatal(err)
			}
			_, err = u.Keep(t.Context(), chat.Application{}, attachment.Incoming{Content: text(c.size), MaxSize: int64(c.size) * kib})
			if got := apperr.ReasonOf(err); err == nil && c.want != "" || err != nil && got != c.want {
				t.Errorf("%s at %s, %d bytes: got %v, want %q", c.sender, c.app, c.size, err, c.want)
			}
			u.End()
		}
	})
}

// A sender, a site, an application and a company have shares of the uploads at once.
func TestSharesOfWhatRunsAtOnce(t *testing.T) {
	t.Parallel()
	holder := attachment.Sender{CompanyID: "a", AppID: "a", ID: "a", Address: "2001:db8:1:1::/64"}
	other := attachment.Sender{CompanyID: "b", AppID: "b", ID: "b", Address: "2001:db8:2::/64"}
	for name, test := range map[string]struct {
		most attachment.AtOnce
		same func(*attachment.Sender)
	}{
		"sender":      {attachment.AtOnce{All: 8, Sender: 1}, func(s *attachment.Sender) { s.ID = holder.ID }},
		"site":        {attachment.AtOnce{All: 8, Site: 1}, func(s *attachment.Sender) { s.Address = "2001:db8:1:2::/64" }},
		"application": {attachment.AtOnce{All: 8, Application: 1}, func(s *attachment.Sender) { s.AppID = holder.AppID }},
		"company":     {attachment.AtOnce{All: 8, Company: 1}, func(s *attachment.Sender) { s.CompanyID = holder.CompanyID }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := attachment.New(attachment.Config{AtOnce: test.most, Now: time.Now})
				for _, from := range []attachment.Sender{holder, other} {
					if _, err := s.Begin(t.Context(), from); err != nil {
						t.Errorf("from %+v: got %v, want a slot", from, err)
					}
				}
				same := attachment.Sender{CompanyID: "c", AppID: "c", ID: "c", Address: "2001:db8:3::/64"}
				test.same(&same)
				_, err := s.Begin(t.Context(), same)
				if apperr.ReasonOf(err) != "TOO_MANY_UPLOADS" || !apperr.Is(err, apperr.TooMany) {
					t.Errorf("one more: got %v, want TOO_MANY_UPLOADS", err)
				}
			})
		})
	}
}

// An upload that stalls loses its slot to one that waits, in seconds; without others it keeps it.
func TestSlowUploadLosesItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := attachment.New(attachment.Config{AtOnce: attachment.AtOnce{All: 1}, Now: time.Now})
		slow, cut := begin(t, s, "app", "slow"), false
		slow.Slot().Watch(func() { cut = true; go slow.End() })
		slow.Slot().Await()
		time.Sleep(time.Minute)
		if cut {
			t.Error("nobody waits: got the slow upload cut off, want it left alone")
		}
		other := begin(t, s, "other", "b") // fails the test without a slot
		if !cut {
			t.Error("another upload waits: got the slow one left alone, want it cut off")
		}
		other.Slot().Watch(func() { t.Error("an upload that moves is cut off") })
		other.Slot().Await()
		other.Slot().Moved(1 << 20)
		if _, err := s.Begin(t.Context(), attachment.Sender{ID: "c"}); apperr.ReasonOf(err) != "TOO_MANY_UPLOADS" || !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("all slots are in use: got %v, want TOO_MANY_UPLOADS", err)
		}
		other.End()
	})
}
