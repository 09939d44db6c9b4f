package bus

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestReorderBuffer(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	kept := func(sequence uint64) *task { return &task{delivery: Delivery{Sequence: sequence}} }

	g := newReorderBuffer(time.Minute)
	for number := uint64(1); number <= 3; number++ {
		if g.observe(number, now) || !g.open() {
			t.Fatalf("sequence %d: got a closed buffer, want it open", number)
		}
	}
	if !g.observe(5, now) || g.open() {
		t.Fatal("after a gap: got an open buffer, want it closed")
	}
	g.add(kept(50))
	if g.observe(6, now) {
		t.Fatal("the buffer closed twice")
	}
	g.add(kept(40))
	if got := g.tryRelease(false, now.Add(59*time.Second)); got != nil || g.open() {
		t.Fatal("incomplete: got an open buffer, want it closed")
	}
	got := g.tryRelease(true, now.Add(time.Second))
	if len(got) != 2 || got[0].delivery.Sequence != 40 || got[1].delivery.Sequence != 50 || !g.open() {
		t.Fatalf("complete: got %v, want 40 and 50 and an open buffer", got)
	}

	if !g.observe(1, now) {
		t.Fatal("recreated consumer: got an open buffer, want it closed")
	}
	g.add(kept(60))
	if got := g.tryRelease(false, now.Add(time.Minute)); len(got) != 1 || !g.open() {
		t.Fatalf("after the limit: got %v, want one task and an open buffer", got)
	}
}

func TestReorderBufferCountsGaps(t *testing.T) {
	t.Parallel()
	g := newReorderBuffer(time.Minute)
	g.observe(2, time.Now())
	g.observe(3, time.Now())
	g.observe(7, time.Now())
	if g.gaps != 2 {
		t.Errorf("got %d gaps, want 2", g.gaps)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	var sent []string
	l := newLedger(2, func(reply, ack string) { sent = append(sent, reply+" "+ack) })
	at := time.Unix(1_000_000, 0)
	deliver := func(sequence uint64, reply string) (*task, bool) {
		x := &task{delivery: Delivery{Sequence: sequence, Time: at}, reply: reply, touched: at}
		return x, l.accept(x)
	}
	expect := func(want ...string) {
		t.Helper()
		if len(sent) != len(want) {
			t.Fatalf("got %v, want %v", sent, want)
		}
		for i := range want {
			if sent[i] != want[i] {
				t.Fatalf("got %v, want %v", sent, want)
			}
		}
		sent = nil
	}

	one, fresh := deliver(1, "a")
	if !fresh {
		t.Error("first delivery: got a duplicate, want it new")
	}
	arrivals := l.arrivals()
	two, _ := deliver(2, "b")
	if got := l.stillHeld(arrivals); got != 1 {
		t.Errorf("got %d of the first arrivals held, want 1", got)
	}
	if _, fresh := deliver(1, "a2"); fresh {
		t.Error("second delivery: got it new, want a duplicate")
	}
	l.finish(one, ackDone)
	expect("a2 " + ackDone)
	if got := l.stillHeld(arrivals); got != 0 {
		t.Errorf("got %d of the first arrivals held, want 0", got)
	}
	if _, fresh := deliver(1, "a3"); fresh {
		t.Error("delivery of a finished task: got it new, want a duplicate")
	}
	expect("a3 " + ackDone)

	l.sendProgress(at.Add(time.Second), 2*time.Second)
	expect()
	l.sendProgress(at.Add(3*time.Second), 2*time.Second)
	expect("b " + ackProgress)
	l.sendProgress(at.Add(4*time.Second), 2*time.Second)
	expect()

	l.finish(two, ackTerm)
	expect("b " + ackTerm)
	at = at.Add(time.Hour) // the stream was recreated
	again, fresh := deliver(1, "c")
	if !fresh {
		t.Error("same sequence of a recreated stream: got a duplicate, want it new")
	}
	l.nak(again)
	expect("c " + ackRetry)
	if _, fresh := deliver(1, "d"); !fresh {
		t.Error("after nak: got a duplicate, want it new")
	}
}

// While the server does not answer it redelivers nothing either: the time limit begins when it answers again.
func TestAClosedBufferWaitsForTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := Consumer{AckWait: time.Second, MaxAckPending: 10, Concurrency: 1, MaxBatch: 1}
		g := &group{cfg: cfg, handlerCtx: t.Context(), members: newMembers(nil, "S", "d")}
		r := newPartitionReader(g, durable{name: "d"}, 1, func() {})
		r.reorder.observe(2, time.Now())
		ended, cancel := context.WithCancel(t.Context())
		cancel() // no further queries
		time.Sleep(2 * r.reorder.limit)
		r.tryOpen(ended, nil, pendingCount{pending: -1, gaps: 1})
		if r.isOpen() {
			t.Error("no answer: got an open buffer, want it closed")
		}
		missing := pendingCount{pending: 1, gaps: 1}
		r.tryOpen(ended, nil, missing)
		if r.isOpen() {
			t.Error("the first answer after the silence: got an open buffer, want it closed")
		}
		time.Sleep(r.reorder.limit)
		r.tryOpen(ended, nil, missing)
		if !r.isOpen() {
			t.Error("the limit has passed: got a closed buffer, want it open")
		}
		r.queries.Wait()
	})
}
