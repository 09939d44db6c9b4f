package conversation

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/parley-chat/parley/pkg/apperr"
)

// An application's reads take at most half of the memory, whatever their number. Unused memory is released, and a read that waits
// too long is refused with Retry-After.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewReads(4 * readCost)
		var flood []*held
		for _, visitor := range []string{"a", "b"} {
			h, err := r.acquire(t.Context(), "app", visitor)
			if err != nil {
				t.Fatal(err)
			}
			flood = append(flood, h)
		}
		if _, err := r.acquire(t.Context(), "app", "c"); !apperr.Is(err, apperr.Unavailable) || apperr.ReasonOf(err) != "TOO_MANY_READS" {
			t.Errorf("the application's third: got %v, want TOO_MANY_READS", err)
		}
		other, err := r.acquire(t.Context(), "other", "d")
		if err != nil {
			t.Errorf("another application: got %v, want memory at once", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.acquire(gone, "app", "c"); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled caller: got %v, want its context's error", err)
		}
		flood[0].shrink(100)
		other.shrink(100)
		flood[0].release()
		flood[0].release() // no harm
		h, err := r.acquire(t.Context(), "app", "c")
		if err != nil {
			t.Errorf("when a page was released: got %v, want memory", err)
		}
		for _, h := range []*held{flood[1], other, h} {
			h.release()
		}
		if !r.memory.TryAcquire(4 * readCost) {
			t.Error("memory is still held after all releases")
		}
		for range 2 {
			_, application := r.applications.TryAcquire("app")
			_, visitor := r.visitors.TryAcquire("a")
			if !application || !visitor {
				t.Error("a share is still held after all releases")
			}
		}
	})
}

func TestAVisitorReadsTwoPagesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewReads(100 * readCost)
		var last *held
		for range readsPerVisitor {
			h, err := r.acquire(t.Context(), "app", "a")
			if err != nil {
				t.Fatal(err)
			}
			last = h
		}
		got := make(chan error)
		go func() {
			_, err := r.acquire(t.Context(), "app", "a")
			got <- err
		}()
		synctest.Wait()
		last.release()
		if err := <-got; err != nil {
			t.Errorf("got %v, want the third to wait for the first", err)
		}
	})
}
