package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// receivers drop deliveries not newer than the last one of their key, as required of receivers of a group
// with offsets.
type receivers struct {
	*sequences
	mu       sync.Mutex
	last     map[string]uint64
	repeated int
}

func newReceivers() *receivers {
	return &receivers{sequences: newSequences(), last: make(map[string]uint64)}
}

func (r *receivers) handle(_ context.Context, d bus.Delivery) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.Sequence <= r.last[d.Subject] {
		r.repeated++
		return nil
	}
	r.last[d.Subject] = d.Sequence
	r.record(d)
	return nil
}

// reset clears the state after the stream was recreated.
func (r *receivers) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.sequences = make(map[string]uint64), newSequences()
}

// byOffset returns a consumer with Offsets.
func byOffset(handle func(context.Context, bus.Delivery) error) bus.Consumer {
	return bus.Consumer{Offsets: true, Concurrency: 4, Handle: handle}
}

// A later consumer resumes at the saved offsets. The group's progress is visible, also while no replica reads.
func TestConsumerResumesAtSavedOffsets(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	handled := newReceivers()
	group := func() bus.PartitionInfo {
		g, err := b.Group(t.Context(), subject.Replies, "tester")
		if err != nil || len(g.Missing()) > 0 || len(g.Partitions) != 32 {
			return bus.PartitionInfo{}
		}
		return g.Total()
	}
	publishAll(t, b, 40, 0, 5)
	first := startReplica(t, url, byOffset(handled.handle))
	timetest.Until(t, "all are handled", func() bool { return handled.len() == 200 })
	timetest.Until(t, "the group is being read", func() bool { return group().Read })
	first.end()
	awaitEmpty(t, b, "tester")
	publishAll(t, b, 40, 5, 5)
	timetest.Until(t, "events are pending and nobody reads", func() bool { total := group(); return total.Pending == 200 && !total.Read })
	startReplica(t, url, byOffset(handled.handle))
	timetest.Until(t, "the rest is handled", func() bool { return handled.len() == 400 })
	awaitEmpty(t, b, "tester")
	handled.check(t, 40, 10)
	if handled.repeated > 0 {
		t.Errorf("got %d redeliveries, want none after a graceful stop", handled.repeated)
	}
}

// Replicas join, leave and crash while visitors write: partitions are redistributed evenly, and a receiver
// that drops duplicates gets each visitor's messages completely and in order.
func TestOffsetsMoveDuringTraffic(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	handled := newReceivers()
	c := byOffset(handled.handle)
	f := startFlow(t, b, 64)
	replicas := []*replica{startReplica(t, url, c)}
	awaitEven(t, replicas...)
	for range 2 {
		replicas = append(replicas, startReplica(t, url, c))
		awaitEven(t, replicas...)
	}
	replicas[0].end()
	awaitEven(t, replicas[1:]...)
	replicas = append(replicas[1:], startReplica(t, url, c))
	awaitEven(t, replicas...)
	timetest.Until(t, "traffic flows", func() bool { return handled.len() > 500 })
	replicas[0].bus.Crash()
	awaitEven(t, replicas[1:]...)
	f.end(t, handled.sequences)
	replicas[0].end()
	awaitEmpty(t, b, "tester")
}

// A failing key does not block others, and the offset does not pass unhandled deliveries: after a crash
// they are delivered again, in order.
func TestOffsetWaitsForFailingDeliveries(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	handled := newReceivers()
	var away atomic.Bool
	away.Store(true)
	handle := func(ctx context.Context, d bus.Delivery) error {
		if away.Load() && strings.HasSuffix(d.Subject, "visitor0") {
			return apperr.Unreachable("redis", errors.New("away"))
		}
		return handled.handle(ctx, d)
	}
	first := startReplica(t, url, byOffset(handle))
	publishAll(t, b, 64, 0, 10) // in 32 partitions
	timetest.Until(t, "the other keys are handled", func() bool { return handled.len() == 63*10 })
	first.end()
	away.Store(false)
	startReplica(t, url, byOffset(handle))
	timetest.Until(t, "all are handled", func() bool { return handled.len() == 64*10 })
	handled.check(t, 64, 10)
	awaitEmpty(t, b, "tester")
}

// A delivery that fails permanently becomes a dead letter, and the offset advances.
func TestOffsetPassesDeadLetters(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	dead := bustest.Collect(t, url, subject.AllDead)
	handled := newReceivers()
	startReplica(t, url, byOffset(func(ctx context.Context, d bus.Delivery) error {
		if number(d) == 0 {
			return apperr.New(apperr.Invalid, "MALFORMED_EVENT", "No")
		}
		return handled.handle(ctx, d)
	}))
	publish(t, b, reply("visitor", 0))
	publish(t, b, reply("visitor", 1))
	if m := dead.Next(); m.Header.Get(bus.HeaderDeadConsumer) != "tester" || m.Header.Get(bus.HeaderDeadSequence) != "1" {
		t.Errorf("got %+v", m.Header)
	}
	timetest.Until(t, "the next is handled", func() bool { return handled.len() == 1 })
	awaitEmpty(t, b, "tester")
}

// NATS restarts, and then the stream is recreated and its sequences start over.
func TestOffsetsSurviveTheServer(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	url := e.nats.URL()
	b := bustest.Open(t, url)
	handled := newReceivers()
	startReplica(t, url, byOffset(handled.handle))
	publishAll(t, b, 20, 0, 5)
	timetest.Until(t, "all are handled", func() bool { return handled.len() == 100 })
	e.stop()
	e.start()
	timetest.Until(t, "NATS is back", func() bool { return b.Ready(t.Context()) == nil })
	publishAll(t, b, 20, 5, 5)
	timetest.Until(t, "the rest is handled", func() bool { return handled.len() == 200 })
	handled.check(t, 20, 10)

	if err := b.DeleteStream(t.Context(), subject.Replies); err != nil {
		t.Fatal(err)
	}
	bustest.DeclareSmall(t, url)
	handled.reset()
	timetest.Until(t, "the stream accepts events", func() bool { return b.Publish(t.Context(), event.Derived(), reply("visitor0", 0)) == nil })
	timetest.Until(t, "the first event is handled", func() bool { return handled.len() > 0 })
	handled.sequences.mu.Lock()
	defer handled.sequences.mu.Unlock()
	if got := handled.byKey[reply("visitor0", 0).Subject()]; !slices.Equal(got, []int{0}) {
		t.Errorf("got %v, want the first of the new stream", got)
	}
}

// A stream that lost its last messages, as after a crash of the server's machine, reuses their sequences: no
// later message is skipped.
func TestOffsetBeyondTheStream(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	handled := newReceivers()
	publish(t, b, reply("visitor", 0))
	first := startReplica(t, url, byOffset(handled.handle))
	timetest.Until(t, "it is handled", func() bool { return handled.len() == 1 })
	first.end()
	read := func() bool {
		g, err := b.Group(t.Context(), subject.Replies, "tester")
		return err == nil && g.Total().Read
	}
	timetest.Until(t, "the partitions are no longer read", func() bool { return !read() })
	state, err := b.State(t.Context(), subject.Replies)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteOffsets(t.Context(), subject.Replies, "tester", 32, bus.Offset{Sequence: 100, Stream: state.Epoch}); err != nil {
		t.Fatal(err)
	}
	startReplica(t, url, byOffset(handled.handle))
	timetest.Until(t, "the partitions are read", read)
	publish(t, b, reply("visitor", 1))
	timetest.Until(t, "the next is handled", func() bool { return handled.len() == 2 })
}

// Replicas with a large lag read without filters, and with filters again after they have caught up.
func TestReplicasCatchUp(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	handled, open := newReceivers(), make(chan struct{})
	c := byOffset(func(ctx context.Context, d bus.Delivery) error {
		<-open
		return handled.handle(ctx, d)
	})
	const keys, each = 64, 80
	publishAll(t, b, keys, 0, each)
	replicas := []*replica{startReplica(t, url, c), startReplica(t, url, c)}
	awaitEven(t, replicas...)
	reading := func() (own, all int) {
		s, err := b.JetStream().Stream(t.Context(), subject.Replies)
		if err != nil {
			return 0, 0
		}
		for info := range s.ListConsumers(t.Context()).Info() {
			switch current := info.NumWaiting > 0 || info.NumPending > 0; {
			case !current: // consumer of an earlier session
			case len(info.Config.FilterSubjects) == 0:
				all++
			default:
				own++
			}
		}
		return own, all
	}
	timetest.Until(t, "both read all partitions", func() bool { _, all := reading(); return all >= 2 })
	close(open)
	timetest.Until(t, "all are handled", func() bool { return handled.len() == keys*each })
	handled.check(t, keys, each)
	timetest.Until(t, "both read their own partitions", func() bool { own, all := reading(); return own == 2 && all == 0 })
}
