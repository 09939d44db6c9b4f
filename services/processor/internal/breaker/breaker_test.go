package breaker_test

import (
	"testing"
	"time"

	"github.com/parley-chat/parley/services/processor/internal/breaker"
)

const name = "server"

func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	b := breaker.Set{Failures: 3}
	for i := range b.Failures {
		if wait := b.Admit(name, now); wait != 0 {
			t.Fatalf("after %d failures: got a wait of %v, want a call", i, wait)
		}
		b.Report(name, now, false, 0)
	}
	if wait := b.Admit(name, now); wait != time.Second || b.Open(now) != 1 {
		t.Fatalf("after %d failures: got a wait of %v, want a second", b.Failures, wait)
	}
	if b.Admit("other", now) != 0 {
		t.Fatal("got no call of another server")
	}
	now = now.Add(time.Second)
	if b.Admit(name, now) != 0 {
		t.Fatal("after its time: got no call, want one")
	}
	if b.Admit(name, now) == 0 {
		t.Fatal("while the probe runs: got another call")
	}
	if now = now.Add(time.Second); b.Admit(name, now) != 0 {
		t.Fatal("while the probe hangs: got no other call, want one a second")
	}
	b.Report(name, now, false, 0)
	if wait := b.Admit(name, now); wait != 2*time.Second {
		t.Fatalf("after it failed: got a wait of %v, want twice as long", wait)
	}
	now = now.Add(2 * time.Second)
	if b.Admit(name, now) != 0 {
		t.Fatal("after its time: got no call, want one")
	}
	b.Report(name, now, true, 0)
	if b.Admit(name, now) != 0 || b.Open(now) != 0 {
		t.Fatal("after an answer: got an open breaker, want it closed")
	}
}

// A pause that a server asks for applies to all calls.
func TestPause(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	b := breaker.Set{Failures: 3}
	b.Report(name, now, true, 7*time.Second)
	b.Report(name, now, true, 0) // a call that began before
	if wait := b.Admit(name, now.Add(time.Second)); wait != 6*time.Second {
		t.Errorf("got a wait of %v, want the 6 seconds that are left", wait)
	}
	if wait := b.Admit(name, now.Add(7*time.Second)); wait != 0 {
		t.Errorf("got a wait of %v after the pause, want none", wait)
	}
}
