package bot

import (
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	var b breaker
	for i := range breakerFailures {
		if wait := b.admit(now); wait != 0 {
			t.Fatalf("after %d failures: got a wait of %v, want a call", i, wait)
		}
		b.report(now, false, 0)
	}
	if wait := b.admit(now); wait != breakerMinOpen {
		t.Fatalf("after %d failures: got a wait of %v, want %v", breakerFailures, wait, breakerMinOpen)
	}
	now = now.Add(breakerMinOpen)
	if b.admit(now) != 0 {
		t.Fatal("after its time: got no call, want one")
	}
	if b.admit(now) == 0 {
		t.Fatal("while the probe runs: got another call")
	}
	if now = now.Add(breakerMinOpen); b.admit(now) != 0 {
		t.Fatal("while the probe hangs: got no other call, want one a second")
	}
	b.report(now, false, 0)
	if wait := b.admit(now); wait != 2*breakerMinOpen {
		t.Fatalf("after it failed: got a wait of %v, want twice as long", wait)
	}
	now = now.Add(2 * breakerMinOpen)
	if b.admit(now) != 0 {
		t.Fatal("after its time: got no call, want one")
	}
	b.report(now, true, 0)
	if b.admit(now) != 0 || b.isOpen(now) {
		t.Fatal("after an answer: got an open breaker, want it closed")
	}
}

// A pause that an endpoint requests applies to all calls.
func TestBreakerRespectsRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	var b breaker
	b.admit(now)
	b.admit(now)
	b.report(now, true, 7*time.Second)
	b.report(now, true, 0) // a call that began before
	if wait := b.admit(now.Add(time.Second)); wait != 6*time.Second {
		t.Errorf("got a wait of %v, want the 6 seconds that are left", wait)
	}
	if wait := b.admit(now.Add(7 * time.Second)); wait != 0 {
		t.Errorf("got a wait of %v after the pause, want none", wait)
	}
}
