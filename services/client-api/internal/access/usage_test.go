package access

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// ledger records writes, with the time since the start.
type ledger struct {
	start time.Time

	mu     sync.Mutex
	used   map[string]time.Duration
	writes int
	err    error
}

func newLedger() *ledger { return &ledger{start: time.Now(), used: make(map[string]time.Duration)} }

func (l *ledger) ChangeAccessToken(_ context.Context, hash string, change store.TokenChange) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.used[hash] = change.UsedAt.Sub(l.start)
	l.writes++
	return nil
}

func (l *ledger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *ledger) state() (used map[string]time.Duration, writes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.used), l.writes
}

// inUse runs a Usage in virtual time; stop ends it and waits.
func inUse(t *testing.T, test func(t *testing.T, u *Usage, l *ledger, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		u := NewUsage(l, slog.New(slog.DiscardHandler), time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); u.Run(ctx) }()
		stop := func() { cancel(); <-ended }
		defer stop()
		test(t, u, l, stop)
	})
}

func TestAFirstUseIsWrittenSoonAndLaterOnesOnceAMinute(t *testing.T) {
	t.Parallel()
	inUse(t, func(t *testing.T, u *Usage, l *ledger, _ func()) {
		for range 180 { // three minutes of use
			u.Note(chat.AccessToken{Hash: "a"})
			time.Sleep(time.Second)
		}
		synctest.Wait()
		used, writes := l.state()
		if writes < 3 || writes > 4 {
			t.Errorf("writes in three minutes: got %d, want one soon and one a minute", writes)
		}
		if used["a"] < 2*time.Minute {
			t.Errorf("last use: got %s after the start, want it in the last minute", used["a"])
		}
	})
	inUse(t, func(t *testing.T, u *Usage, l *ledger, _ func()) {
		time.Sleep(7 * time.Second)
		u.Note(chat.AccessToken{Hash: "a"})
		time.Sleep(usageTick)
		synctest.Wait()
		if used, _ := l.state(); used["a"] != 7*time.Second {
			t.Errorf("first use: got %v, want it written within %s", used, usageTick)
		}
	})
}

func TestUsesAreWrittenAtTheStop(t *testing.T) {
	t.Parallel()
	inUse(t, func(t *testing.T, u *Usage, l *ledger, stop func()) {
		u.Note(chat.AccessToken{Hash: "a"})
		time.Sleep(2 * usageTick)
		u.Note(chat.AccessToken{Hash: "a"})
		u.Note(chat.AccessToken{Hash: "b"})
		stop()
		used, _ := l.state()
		if want := map[string]time.Duration{"a": 2 * usageTick, "b": 2 * usageTick}; !maps.Equal(used, want) {
			t.Errorf("got %v, want %v", used, want)
		}
	})
}

func TestUsesSurviveAStoreOutage(t *testing.T) {
	t.Parallel()
	inUse(t, func(t *testing.T, u *Usage, l *ledger, _ func()) {
		l.fail(errors.New("away"))
		u.Note(chat.AccessToken{Hash: "a"})
		time.Sleep(3 * usageTick)
		l.fail(nil)
		time.Sleep(2 * usageTick)
		synctest.Wait()
		if used, _ := l.state(); len(used) != 1 || used["a"] != 0 {
			t.Errorf("got %v, want the use of the start", used)
		}
	})
}

func TestAnInvalidTokenIsNotUsed(t *testing.T) {
	t.Parallel()
	inUse(t, func(t *testing.T, u *Usage, l *ledger, stop func()) {
		u.Note(chat.AccessToken{Hash: "revoked", RevokedAt: time.Now()})
		u.Note(chat.AccessToken{Hash: "expired", ExpiresAt: time.Now()})
		stop()
		if used, _ := l.state(); len(used) != 0 {
			t.Errorf("got %v, want nothing", used)
		}
	})
}

func TestUnusedTokensAreDropped(t *testing.T) {
	t.Parallel()
	inUse(t, func(t *testing.T, u *Usage, _ *ledger, _ func()) {
		u.Note(chat.AccessToken{Hash: "a"})
		time.Sleep(usagePeriod + 3*usageTick)
		synctest.Wait()
		u.mu.Lock()
		defer u.mu.Unlock()
		if len(u.seen) != 0 {
			t.Errorf("remembered: got %d tokens, want none", len(u.seen))
		}
	})
}
