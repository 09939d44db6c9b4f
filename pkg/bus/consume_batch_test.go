package bus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// Deliveries that wait while the handler is busy form one batch, with one delivery per key and each key in order.
func TestHandleBatchGetsWaitingDeliveries(t *testing.T) {
	t.Parallel()
	const keys, each, most = 10, 5, 4
	b := bustest.Open(t, bustest.Start(t).URL())
	got, sizes := newSequences(), make(chan int, keys*each)
	consume(t, b, bus.Consumer{Concurrency: 1, MaxBatch: most, HandleBatch: func(_ context.Context, batch []bus.Delivery) []error {
		if got.len() == 0 {
			publishAll(t, b, keys, 0, each) // all others wait meanwhile
		}
		seen := make(map[string]bool)
		for _, d := range batch {
			if seen[d.Subject] {
				t.Errorf("got %s twice in a batch", d.Subject)
			}
			seen[d.Subject] = true
			got.record(d)
		}
		sizes <- len(batch)
		return nil
	}})
	publish(t, b, reply("first", 0))
	timetest.Until(t, "all deliveries have arrived", func() bool { return got.len() == 1+keys*each })
	awaitEmpty(t, b, "tester")
	delete(got.byKey, reply("first", 0).Subject())
	got.check(t, keys, each)
	close(sizes)
	largest := 0
	for n := range sizes {
		largest = max(largest, n)
	}
	if largest != most {
		t.Errorf("got at most %d deliveries in a batch, want %d", largest, most)
	}
}

// An error affects its delivery only, which is retried after the requested pause.
func TestHandleBatchErrorsArePerDelivery(t *testing.T) {
	t.Parallel()
	const keys, each, failures = 6, 4, 20
	b := bustest.Open(t, bustest.Start(t).URL())
	var mu sync.Mutex
	failed, got := 0, newSequences()
	consume(t, b, bus.Consumer{MaxPause: time.Millisecond, HandleBatch: func(_ context.Context, batch []bus.Delivery) []error {
		mu.Lock()
		defer mu.Unlock()
		errs := make([]error, len(batch))
		for i, d := range batch {
			if d.Subject == reply("visitor0", 0).Subject() && failed < failures {
				failed++
				errs[i] = apperr.New(apperr.Unavailable, "AWAY", "away")
				continue
			}
			got.record(d)
		}
		return errs
	}})
	publishAll(t, b, keys, 0, each)
	// with the default pauses this would take over a minute
	timetest.Until(t, "all deliveries have arrived", func() bool { return got.len() == keys*each })
	awaitEmpty(t, b, "tester")
	got.check(t, keys, each)
}

// A delivery that makes the handler panic does not fail the others of its batch.
func TestHandleBatchPanicFailsOneDelivery(t *testing.T) {
	t.Parallel()
	const keys = 5
	b := bustest.Open(t, bustest.Start(t).URL())
	var mu sync.Mutex
	handled := make(map[string]bool)
	consume(t, b, bus.Consumer{MaxPause: time.Millisecond, HandleBatch: func(_ context.Context, batch []bus.Delivery) []error {
		for _, d := range batch {
			if d.Subject == reply("visitor0", 0).Subject() {
				panic("poison")
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, d := range batch {
			handled[d.Subject] = true
		}
		return nil
	}})
	publishAll(t, b, keys, 0, 1)
	awaitEmpty(t, b, "tester")
	mu.Lock()
	defer mu.Unlock()
	for k := range keys {
		if subj := reply(fmt.Sprintf("visitor%d", k), 0).Subject(); handled[subj] != (k > 0) {
			t.Errorf("%s: got handled %v", subj, handled[subj])
		}
	}
	dead, err := b.JetStream().Stream(t.Context(), "DEAD")
	if err != nil {
		t.Fatal(err)
	}
	if n := dead.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("got %d dead letters, want 1", n)
	}
}
