package keyed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Each key has its own slots; a key without callers takes no memory.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphore(1)
		first, ok := s.TryAcquire("a")
		other, free := s.TryAcquire("b")
		if _, again := s.TryAcquire("a"); !ok || !free || again {
			t.Errorf("got %v, %v and %v, want one slot for each key", ok, free, again)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Acquire(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no slot in a second: got %v, want the context's error", err)
		}
		go first()
		second, err := s.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatalf("after the release: got %v, want the slot", err)
		}
		second()
		other()
		if len(s.entries) != 0 {
			t.Errorf("got %d keys left, want none", len(s.entries))
		}
	})
}

func TestUnlimitedSemaphore(t *testing.T) {
	t.Parallel()
	s := NewSemaphore(0)
	for range 100 {
		if _, ok := s.TryAcquire("a"); !ok {
			t.Fatal("got no slot, want no limit")
		}
	}
}
