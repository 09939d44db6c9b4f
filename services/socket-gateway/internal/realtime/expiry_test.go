package realtime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ending notes what becomes of a socket.
type ending struct{ told, at time.Time }

func (e *ending) Disconnect(bool) { e.at = time.Now() }

func (e *ending) Emit(event string, _ ...any) error {
	if event == eventExpiring && e.told.IsZero() {
		e.told = time.Now()
	}
	return nil
}

func TestExpiryTellsAndEndsSocketsInTheirSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newExpiry(time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go x.run(ctx)
		start := time.Now()
		times := map[string]time.Duration{"past": -time.Minute, "soon": 1500 * time.Millisecond, "later": time.Hour, "same": time.Hour, "far": 24 * time.Hour}
		sockets := make(map[string]*ending)
		for name, in := range times {
			sockets[name] = &ending{}
			x.watch(&lease{}, sockets[name], start.Add(in))
		}
		gone, lease := &ending{}, &lease{}
		x.watch(lease, gone, start.Add(time.Hour))
		x.forget(lease)

		time.Sleep(25 * time.Hour) // of the bubble's clock
		synctest.Wait()
		for name, in := range times {
			s := sockets[name]
			if late := s.at.Sub(start.Add(max(in, 0))); s.at.IsZero() || late < 0 || late > 2*time.Second {
				t.Errorf("%s: got the disconnect at %s, want it within two seconds after %s", name, s.at.Sub(start), in)
			}
			if late := s.told.Sub(start.Add(max(in-expiryNotice, 0))); in > 0 && (s.told.IsZero() || late < 0 || late > 2*time.Second) {
				t.Errorf("%s: got the warning at %s, want it a minute before %s", name, s.told.Sub(start), in)
			}
		}
		if !gone.at.IsZero() || !gone.told.IsZero() {
			t.Error("got an event to a socket that had disconnected, want none")
		}
		if len(x.due) != 0 {
			t.Errorf("got %d seconds that are still noted, want none", len(x.due))
		}
	})
}

// A renewed token moves the end, and is announced again.
func TestExpiryRenews(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	x := newExpiry(func() time.Time { return now })
	s, lease := &ending{}, &lease{}
	x.watch(lease, s, now.Add(time.Hour))
	step := func(d time.Duration) {
		now = now.Add(d)
		for _, tell := range x.takeDue() {
			tell()
		}
	}
	step(59*time.Minute + time.Second)
	if s.told.IsZero() {
		t.Fatal("got no warning a minute before the expiry, want one")
	}
	s.told = time.Time{}
	if !x.renew(lease, now.Add(2*time.Hour)) {
		t.Fatal("got a refusal before the expiry, want the renewal")
	}
	if step(time.Hour); !s.at.IsZero() || !s.told.IsZero() {
		t.Error("got an event at the old expiry, want none")
	}
	if step(59*time.Minute + 30*time.Second); s.told.IsZero() || !s.at.IsZero() {
		t.Error("got no warning before the new expiry, want one")
	}
	if step(time.Minute); s.at.IsZero() {
		t.Error("got no disconnect, want one")
	}
	if x.renew(lease, now.Add(time.Hour)) {
		t.Error("got a renewal after the expiry, want a refusal")
	}
	if len(x.due) != 0 {
		t.Errorf("got %d seconds that are still noted, want none", len(x.due))
	}
}

// A clock that was set forward ends what has expired meanwhile.
func TestExpiryCatchesUp(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	x := newExpiry(func() time.Time { return now })
	ended := 0
	for i := range 100 {
		x.watch(&lease{}, &ending{}, now.Add(time.Duration(i+1)*time.Second))
	}
	now = now.Add(50 * time.Second)
	x.takeDue() // the warnings, due immediately, and the disconnects due meanwhile
	for _, seconds := range x.due {
		for l := range seconds {
			if !l.ended {
				ended++
			}
		}
	}
	if ended != 50 {
		t.Errorf("got %d sockets that live on, want 50", ended)
	}
}

func TestExpiryForgetsAfterTheFact(t *testing.T) {
	t.Parallel()
	x := newExpiry(time.Now)
	l := &lease{}
	x.watch(l, &ending{}, time.Now().Add(-time.Hour))
	x.forget(l)
	if len(x.due) != 0 {
		t.Errorf("got %d seconds that are still noted, want none", len(x.due))
	}
}
