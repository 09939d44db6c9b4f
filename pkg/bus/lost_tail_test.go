package bus_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// publishReplies publishes count replies to visitor, numbered from from.
func publishReplies(t *testing.T, b *bus.Bus, visitor string, from, count int) {
	t.Helper()
	for n := range count {
		if err := b.Publish(t.Context(), event.Derived(), reply(visitor, from+n)); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshot stops the engine, keeps a copy of its folder and starts it again. restore brings the copy back.
func (e *engine) snapshot() (restore func()) {
	e.t.Helper()
	kept := filepath.Join(e.t.TempDir(), "kept")
	e.stop()
	if err := os.CopyFS(kept, os.DirFS(e.dir)); err != nil {
		e.t.Fatal(err)
	}
	e.start()
	return func() {
		e.t.Helper()
		e.stop()
		if err := os.RemoveAll(e.dir); err != nil {
			e.t.Fatal(err)
		}
		if err := os.CopyFS(e.dir, os.DirFS(kept)); err != nil {
			e.t.Fatal(err)
		}
		e.start()
	}
}

func state(t *testing.T, b *bus.Bus) bus.StreamState {
	t.Helper()
	s, err := b.State(t.Context(), subject.Replies)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func awaitLost(t *testing.T, b *bus.Bus) {
	t.Helper()
	receive(t, "the end of the bus", b.Lost().Done())
	if err := context.Cause(b.Lost()); !strings.Contains(err.Error(), "stream REPLIES has lost its messages") {
		t.Errorf("got %v, want the lost messages", err)
	}
}

// A publisher notices that the stream ends below what it acknowledged, and a reader that knows nothing of it learns it.
func TestLostTailIsNoticedByAcknowledgements(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	publishReplies(t, b, "v", 0, 5)
	restore := e.snapshot()
	bustest.AwaitReady(t, b)
	before := state(t, b)
	reader := bustest.Open(t, e.nats.URL())
	state(t, reader)
	publishReplies(t, b, "v", 5, 7)

	restore()
	awaitLost(t, b)
	timetest.Until(t, "the reader has asked again", func() bool {
		_, _ = reader.State(t.Context(), subject.Replies) // the server may be away
		return reader.Lost().Err() != nil
	})
	later := bustest.Open(t, e.nats.URL())
	after := state(t, later)
	if l := after.Lost; l.From != 6 || l.To != 12 || l.Messages() != 7 || !l.Previous.Equal(before.Epoch) {
		t.Errorf("got the record %+v, want messages 6 to 12 after the epoch %v", l, before.Epoch)
	}
	if shown := later.LostTails(); len(shown) != 1 || shown[0] != after.Lost {
		t.Errorf("got the lost tails %v, want %v", shown, after.Lost)
	}
	if !after.Epoch.Equal(after.Lost.Noticed) || !after.Epoch.After(before.Epoch) {
		t.Errorf("got the epoch %v, want that of the record, after %v", after.Epoch, before.Epoch)
	}
}

// The power fails again before the record of a lost tail is on the disk. A process that knows the record writes it
// again: the epoch that it has begun goes on.
func TestLostTailIsRecordedAgain(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	publishReplies(t, b, "v", 0, 5)
	restore := e.snapshot()
	bustest.AwaitReady(t, b)
	publishReplies(t, b, "v", 5, 7)
	restore()
	awaitLost(t, b)
	b.Close() // its process ends
	knows := bustest.Open(t, e.nats.URL())
	before := state(t, knows)

	restore()
	var after bus.StreamState
	timetest.Until(t, "the stream can be read again", func() bool {
		var err error
		after, err = knows.State(t.Context(), subject.Replies)
		return err == nil
	})
	fresh := state(t, bustest.Open(t, e.nats.URL()))
	if before.Lost.Messages() == 0 || after.Lost != before.Lost || fresh.Lost != before.Lost {
		t.Errorf("got the records %+v and, in another process, %+v, want %+v again", after.Lost, fresh.Lost, before.Lost)
	}
	if !fresh.Epoch.Equal(before.Epoch) {
		t.Errorf("got the epoch %v, want %v", fresh.Epoch, before.Epoch)
	}
}

// The new messages have used all lost sequences before a consumer is back: it knows its last message by the id.
func TestLostTailIsNoticedByAnotherMessageAtItsSequence(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	publisher := bustest.Open(t, e.nats.URL())
	publishReplies(t, publisher, "v", 0, 5)
	restore := e.snapshot()

	b := bustest.Open(t, e.nats.URL())
	bustest.AwaitReady(t, publisher)
	publishReplies(t, publisher, "v", 5, 7)
	publisher.Close()
	consumeReplies(t, b, newSequences(), 12)
	mark, ok := b.Mark(subject.Replies)
	if !ok || mark.Sequence != 12 {
		t.Fatalf("got the mark %+v, want that of message 12", mark)
	}
	b.Close() // the process was away meanwhile

	restore()
	fresh := bustest.Open(t, e.nats.URL())
	publishReplies(t, fresh, "v", 100, 9)
	reopened := bustest.Open(t, e.nats.URL())
	l, lost, err := reopened.NoticeLoss(t.Context(), mark)
	if err != nil || !lost || l.From != 6 || l.To != 12 {
		t.Errorf("got %+v, %v and %v, want messages 6 to 12 lost", l, lost, err)
	}
	if epoch := state(t, reopened).Epoch; !epoch.Equal(l.Noticed) || reopened.Lost().Err() != nil {
		t.Errorf("got the epoch %v and the end %v, want the new epoch and no end", epoch, reopened.Lost().Err())
	}
	_, again, err := reopened.NoticeLoss(t.Context(), mark)
	if err != nil || !again {
		t.Errorf("the mark of the lost epoch: got %v and %v, want the loss again", again, err)
	}
}

// No process knows that a message was lost, but a browser has it: its place shows that another one is there.
func TestPlaceOfALostMessage(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	publishReplies(t, b, "v", 0, 5)
	restore := e.snapshot()
	bustest.AwaitReady(t, b)
	kept := lastPlace(t, b)
	publishReplies(t, b, "v", 5, 1)
	lost := lastPlace(t, b)
	b.Close()

	restore()
	fresh := bustest.Open(t, e.nats.URL())
	publishReplies(t, fresh, "v", 6, 2)
	for _, test := range []struct {
		name string
		at   bus.Place
		want bool
	}{
		{"what was kept", kept, true},
		{"what was lost, and replaced by another message", lost, false},
		{"what came last", lastPlace(t, fresh), true},
		{"what is not there", bus.Place{Sequence: 100, Time: lost.Time}, true},
		{"the beginning", bus.Place{}, true},
	} {
		got, err := fresh.Holds(t.Context(), subject.Replies, test.at)
		if err != nil || got != test.want {
			t.Errorf("%s: got %v and %v, want %v", test.name, got, err, test.want)
		}
	}
}

func lastPlace(t *testing.T, b *bus.Bus) bus.Place {
	t.Helper()
	d, err := b.Last(t.Context(), subject.Replies, subject.Reply("app", "v"))
	if err != nil {
		t.Fatal(err)
	}
	return d.Place()
}

// A server that comes back with all of its messages has lost none, also if some were purged.
func TestRestartLosesNothing(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	publishReplies(t, b, "v", 0, 5)
	consumeReplies(t, b, newSequences(), 5)
	if _, err := b.Purge(t.Context(), subject.Replies, subject.Reply("app", "v")); err != nil {
		t.Fatal(err)
	}
	publishReplies(t, b, "w", 0, 1)
	before := state(t, b)
	e.stop()
	e.start()
	bustest.AwaitReady(t, b)
	after := state(t, b)
	if after.Lost.Messages() != 0 || !after.Epoch.Equal(before.Epoch) || b.Lost().Err() != nil {
		t.Errorf("got %+v and the end %v, want nothing lost", after, b.Lost().Err())
	}
}

// A group goes on at the first lost sequence: it repeats nothing that the stream has kept, and skips nothing new.
func TestOffsetsGoOnAfterALostTail(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	publishReplies(t, b, "v", 0, 5)
	consumeReplies(t, b, newSequences(), 5)
	restore := e.snapshot()
	bustest.AwaitReady(t, b)
	publishReplies(t, b, "v", 5, 7)
	consumeReplies(t, b, newSequences(), 7)

	restore()
	awaitLost(t, b)
	b.Close()
	b = bustest.Open(t, e.nats.URL())
	publishReplies(t, b, "v", 100, 3)
	got := newSequences()
	consumeReplies(t, b, got, 3)
	got.mu.Lock()
	defer got.mu.Unlock()
	for _, numbers := range got.byKey {
		if len(numbers) != 3 || numbers[0] != 100 {
			t.Errorf("got %v, want 100, 101 and 102", numbers)
		}
	}
}

// consumeReplies handles count replies as a group with offsets and returns when the group has stopped.
func consumeReplies(t *testing.T, b *bus.Bus, into *sequences, count int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() {
		_ = b.Consume(ctx, bus.Consumer{
			Stream: subject.Replies, Durable: "tester", Offsets: true,
			Handle: func(_ context.Context, d bus.Delivery) error { into.record(d); return nil },
		})
	})
	timetest.Until(t, "the replies are handled", func() bool { return into.len() >= count })
	stop()
	running.Wait()
}
