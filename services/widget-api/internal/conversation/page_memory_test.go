package conversation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/slot"
)

// An application's reads take at most half of the memory, whatever their number. Unused memory is released,
// and a read that waits too long is refused with Retry-After.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewPageMemory(4 * pageCost)
		var flood []*slot.Slot
		for _, visitor := range []string{"a", "b"} {
			h, err := r.acquire(t.Context(), "app", visitor, visitor)
			if err != nil {
				t.Fatal(err)
			}
			flood = append(flood, h)
		}
		if _, err := r.acquire(t.Context(), "app", "c", "c"); !apperr.Is(err, apperr.Unavailable) || apperr.ReasonOf(err) != "TOO_MANY_READS" {
			t.Errorf("the application's third: got %v, want TOO_MANY_READS", err)
		}
		other, err := r.acquire(t.Context(), "other", "d", "d")
		if err != nil {
			t.Errorf("another application: got %v, want memory at once", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.acquire(gone, "app", "c", "c"); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled caller: got %v, want its context's error", err)
		}
		flood[0].Shrink(100)
		other.Shrink(100)
		flood[0].Release()
		flood[0].Release() // no harm
		h, err := r.acquire(t.Context(), "app", "c", "c")
		if err != nil {
			t.Errorf("when a page was released: got %v, want memory", err)
		}
		for _, h := range []*slot.Slot{flood[1], other, h} {
			h.Release()
		}
		for n, app := range []string{"app", "app", "other", "other"} { // all of it is free again
			if _, err := r.acquire(t.Context(), app, app, fmt.Sprint(n)); err != nil {
				t.Errorf("after all releases: got %v, want memory", err)
			}
		}
	})
}

// A page that would wait behind as many others of its visitor, site or application as may wait is refused at once.
func TestPagesThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		visitor, site func(n int) string
		want          int // pages in memory or waiting
	}{
		"of a visitor":      {func(int) string { return "v" }, func(int) string { return "192.0.2.1" }, 2 + 8},
		"of a site":         {strconv.Itoa, func(int) string { return "192.0.2.1" }, 4 + 16},
		"of an application": {strconv.Itoa, func(n int) string { return fmt.Sprint("192.0.2.", n) }, 8 + 128},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := NewPageMemory(16 * pageCost)
				ctx, cancel := context.WithCancel(t.Context())
				var at sync.WaitGroup
				start, refused := time.Now(), 0
				for n := range 1000 {
					at.Go(func() {
						_, err := r.acquire(ctx, "app", test.visitor(n), test.site(n))
						if apperr.ReasonOf(err) == apperr.TooManyReads.Reason && time.Since(start) == 0 {
							refused++
						}
					})
					synctest.Wait()
				}
				cancel()
				at.Wait()
				if got := 1000 - refused; got != test.want {
					t.Errorf("got %d pages in memory or waiting, want %d", got, test.want)
				}
			})
		})
	}
}

// The visitors of one site take a quarter of the memory, and leave the rest of their application's to others.
func TestVisitorsOfOneSiteShareAQuarter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewPageMemory(8 * pageCost)
		for n := range 2 {
			if _, err := r.acquire(t.Context(), "app", fmt.Sprint(n), fmt.Sprintf("2001:db8:1:%d::/64", n)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.acquire(t.Context(), "app", "2", "2001:db8:1:2::/64"); !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("the site's third: got %v, want TOO_MANY_READS", err)
		}
		if _, err := r.acquire(t.Context(), "app", "3", "2001:db8:2::/64"); err != nil {
			t.Errorf("another site: got %v, want memory at once", err)
		}
	})
}

func TestAVisitorReadsTwoPagesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewPageMemory(100 * pageCost)
		var last *slot.Slot
		for range pagesPerVisitor {
			h, err := r.acquire(t.Context(), "app", "a", "a")
			if err != nil {
				t.Fatal(err)
			}
			last = h
		}
		got := make(chan error)
		go func() {
			_, err := r.acquire(t.Context(), "app", "a", "a")
			got <- err
		}()
		synctest.Wait()
		last.Release()
		if err := <-got; err != nil {
			t.Errorf("got %v, want the third to wait for the first", err)
		}
	})
}

// Pages that clients of six applications do not receive take no memory from a read that waits.
func TestSlowReadersLoseTheirMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, cut := NewPageMemory(64<<20), 0
		for n := range 36 {
			h, err := r.acquire(t.Context(), fmt.Sprint("app", n%6), fmt.Sprint("visitor", n), fmt.Sprint("address", n))
			if err != nil {
				t.Fatal(err)
			}
			h.Shrink(maxPageBytes)
			h.Watch(func() { cut++; go h.Release() })
			h.Await()
		}
		began := time.Now()
		if _, err := r.acquire(t.Context(), "other", "a", "a"); err != nil || time.Since(began) > 3*time.Second {
			t.Errorf("got %v after %v with %d readers cut off, want memory in seconds", err, time.Since(began), cut)
		}
	})
}
