package bus_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

type revocation struct {
	visitor string
	from    time.Time
}

// follow follows the revocations until the test ends.
func follow(t *testing.T, b *bus.Bus) (heard <-chan revocation, caughtUp *atomic.Int32) {
	t.Helper()
	all, count := make(chan revocation, 100), new(atomic.Int32)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.FollowRevocations(ctx, func(visitor string, from time.Time) { all <- revocation{visitor, from} }, func(time.Duration) { count.Add(1) })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return all, count
}

// A revocation reaches current followers at once, and later ones too, also after a restart of NATS. Only the
// last one per visitor is stored.
func TestRevocationsLast(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	one := bustest.Open(t, e.nats.URL())
	at := time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	heard, caughtUp := follow(t, one)
	timetest.Until(t, "an empty stream is read", func() bool { return caughtUp.Load() > 0 })
	for i, visitor := range []string{"a", "b", "a"} {
		from := at.Add(time.Duration(i) * time.Second)
		if err := one.RevokeVisitorTokens(t.Context(), "company", visitor, from); err != nil {
			t.Fatalf("RevokeVisitorTokens: %v", err)
		}
		if got := receive(t, "the revocation", heard); got.visitor != visitor || !got.from.Equal(from) {
			t.Errorf("got %+v, want %s from %s", got, visitor, from)
		}
	}
	e.stop()
	e.start()
	two := bustest.Open(t, e.nats.URL())
	later, caughtUp := follow(t, two)
	got := map[string]time.Time{}
	for range 2 {
		r := receive(t, "a revocation that is kept", later)
		got[r.visitor] = r.from
	}
	if !got["a"].Equal(at.Add(2*time.Second)) || !got["b"].Equal(at.Add(time.Second)) {
		t.Errorf("got %v, want the last one per visitor", got)
	}
	timetest.Until(t, "caught up", func() bool { return caughtUp.Load() > 0 })
	stream, err := two.JetStream().Stream(t.Context(), subject.Revocations)
	if err != nil {
		t.Fatal(err)
	}
	if c := stream.CachedInfo().Config; c.MaxMsgsPerSubject != 1 {
		t.Errorf("got %d per subject, want 1", c.MaxMsgsPerSubject)
	}
	if err := two.RevokeVisitorTokens(t.Context(), "company", "no.visitor", at); err == nil {
		t.Error("invalid visitor id: got no error, want one")
	}
}

// A company's revocations leave room for those of other companies. Its visitors that have one may be revoked again.
func TestACompanysRevocationsAreBounded(t *testing.T) {
	t.Parallel()
	const allowed = 5
	b := bustest.Open(t, bustest.StartSized(t, bus.StreamSettings{MaxBytes: allowed * 160 * 10}).URL())
	now := time.Now()
	revoke := func(company, visitor string) error { return b.RevokeVisitorTokens(t.Context(), company, visitor, now) }
	for i := range allowed {
		if err := revoke("greedy", fmt.Sprint("visitor-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := revoke("greedy", "one-more"); !apperr.Is(err, apperr.TooMany) {
		t.Errorf("one more: got %v, want too many", err)
	}
	if err := revoke("greedy", "visitor-0"); err != nil {
		t.Errorf("the same visitor again: got %v, want no error", err)
	}
	if err := revoke("other", "visitor"); err != nil {
		t.Errorf("another company: got %v, want no error", err)
	}
}
