package bus_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// The server computes the same partition as this package, and only readers of the stream see it.
func TestStreamStoresThePartition(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	heard := bustest.Collect(t, url, "chat.>")
	const visitors = 100
	for v := range visitors {
		publish(t, b, reply("visitor"+strconv.Itoa(v), v))
	}
	s, err := b.JetStream().Stream(t.Context(), subject.Replies)
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	for v := range visitors {
		published := reply("visitor"+strconv.Itoa(v), v).Subject()
		m, err := s.GetMsg(t.Context(), uint64(v+1))
		if err != nil || m.Subject != subject.Stored(published, 32) || subject.Published(m.Subject) != published {
			t.Fatalf("got subject %v and %v, want %s", m, err, subject.Stored(published, 32))
		}
		partition, _, _ := strings.Cut(m.Subject, ".")
		used[partition] = true
		if got := heard.Next().Subject; got != published {
			t.Errorf("a subscriber got %s, want %s", got, published)
		}
		last, err := b.Last(t.Context(), subject.Replies, published)
		if err != nil || last.Subject != published || number(last) != v {
			t.Errorf("last of %s: got %+v and %v", published, last, err)
		}
	}
	if len(used) < 20 {
		t.Errorf("got %d partitions used by %d visitors, want most of 32", len(used), visitors)
	}
}

// A stream keeps the number of partitions that it was created with. A stream without partitions is read as a whole.
func TestStreamKeepsItsPartitions(t *testing.T) {
	t.Parallel()
	url := bustest.StartBare(t).URL()
	bustest.Declare(t, url, bus.StreamSettings{Partitions: 1})
	bustest.Declare(t, url, bus.StreamSettings{Partitions: 8})
	b := bustest.Open(t, url)
	if n, err := b.Partitions(t.Context(), subject.Replies); n != 1 || err != nil {
		t.Fatalf("got %d partitions and %v, want the original 1", n, err)
	}
	handled := newSequences()
	note := func(_ context.Context, d bus.Delivery) error { handled.record(d); return nil }
	consume(t, b, bus.Consumer{Handle: note})
	consume(t, bustest.Open(t, url), bus.Consumer{Handle: note})
	publishAll(t, b, 10, 0, 10)
	timetest.Until(t, "all are handled", func() bool { return handled.len() == 100 })
	handled.check(t, 10, 10)
}

// replica is a consuming process from the point of view of the others.
type replica struct {
	*consumer
	bus      *bus.Bus
	registry *prometheus.Registry
}

func startReplica(t *testing.T, url string, c bus.Consumer) *replica {
	t.Helper()
	r := &replica{registry: prometheus.NewRegistry()}
	r.bus = bustest.OpenConfig(t, bus.Config{URL: url, Registerer: r.registry, Logger: slog.New(slog.DiscardHandler)})
	r.consumer = consume(t, r.bus, c)
	return r
}

// partitions returns the number of partitions that the replica reads.
func (r *replica) partitions(t *testing.T) int {
	t.Helper()
	return int(value(t, r.registry, "parley_bus_partitions", map[string]string{"stream": subject.Replies, "consumer": "tester"}))
}

// awaitEven waits until the replicas read all partitions, distributed evenly.
func awaitEven(t *testing.T, replicas ...*replica) {
	t.Helper()
	timetest.Until(t, fmt.Sprintf("%d replicas share the partitions", len(replicas)), func() bool {
		total := 0
		for _, r := range replicas {
			n := r.partitions(t)
			if n < 32/len(replicas) || n > 32/len(replicas)+1 {
				return false
			}
			total += n
		}
		return total == 32
	})
}

// flow publishes increasing numbers for many visitors until it is stopped.
type flow struct {
	stopped  atomic.Bool
	visitors sync.WaitGroup
	keys     int
	each     []int
}

func startFlow(t *testing.T, b *bus.Bus, keys int) *flow {
	f := &flow{keys: keys, each: make([]int, keys)}
	t.Cleanup(func() { f.stopped.Store(true); f.visitors.Wait() })
	for k := range keys {
		f.visitors.Go(func() {
			for ; !f.stopped.Load(); f.each[k]++ {
				if err := b.Publish(context.Background(), event.Derived(), reply(fmt.Sprintf("visitor%d", k), f.each[k])); err != nil {
					t.Errorf("publishing: %v", err)
					return
				}
				time.Sleep(3 * time.Millisecond) // pace of a visitor
			}
		})
	}
	return f
}

// end stops the flow, waits until all events are handled, and checks that each visitor's were handled once
// and in order.
func (f *flow) end(t *testing.T, handled *sequences) {
	t.Helper()
	f.stopped.Store(true)
	f.visitors.Wait()
	total := 0
	for _, n := range f.each {
		total += n
	}
	timetest.Until(t, "all are handled", func() bool { return handled.len() >= total })
	handled.mu.Lock()
	defer handled.mu.Unlock()
	for k, n := range f.each {
		if err := ascending(handled.byKey[reply(fmt.Sprintf("visitor%d", k), 0).Subject()], n); err != nil {
			t.Errorf("visitor %d: %v", k, err)
		}
	}
}

// Replicas join and leave while visitors write: partitions are redistributed evenly, and each visitor's
// messages are handled in order, once, and never by two replicas at the same time.
func TestPartitionsMoveDuringTraffic(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	handled := newSequences()
	var running sync.Map
	c := bus.Consumer{Concurrency: 100, Handle: func(_ context.Context, d bus.Delivery) error {
		if _, twice := running.LoadOrStore(d.Subject, true); twice {
			t.Errorf("two concurrent handlers of %s", d.Subject)
		}
		time.Sleep(2 * time.Millisecond)
		handled.record(d)
		running.Delete(d.Subject)
		return nil
	}}
	f := startFlow(t, b, 64)
	replicas := []*replica{startReplica(t, url, c)}
	awaitEven(t, replicas...)
	for range 3 { // four replicas
		replicas = append(replicas, startReplica(t, url, c))
		awaitEven(t, replicas...)
	}
	for range 4 { // a rolling restart
		stopped := replicas[0]
		stopped.end()
		if n := stopped.partitions(t); n > 0 {
			t.Errorf("got %d partitions of a stopped replica, want none", n)
		}
		replicas = append(replicas[1:], startReplica(t, url, c))
		awaitEven(t, replicas...)
	}
	for _, r := range replicas[1:] {
		r.end()
	}
	awaitEven(t, replicas[0])
	f.end(t, handled)
	awaitEmpty(t, b, "tester")
}

// A replica crashes with running handlers. The others take over its partitions and handle its unfinished
// deliveries, in order.
func TestPartitionsOfADeadReplica(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	handled := newSequences()
	handle := func(_ context.Context, d bus.Delivery) error { handled.record(d); return nil }
	var dead atomic.Bool
	stuck := make(chan struct{})
	doomed := startReplica(t, url, bus.Consumer{Concurrency: 100, Handle: func(ctx context.Context, d bus.Delivery) error {
		if dead.Load() {
			<-stuck // started, and never finished
			return nil
		}
		return handle(ctx, d)
	}})
	others := []*replica{startReplica(t, url, bus.Consumer{Handle: handle}), startReplica(t, url, bus.Consumer{Handle: handle})}
	awaitEven(t, doomed, others[0], others[1])
	f := startFlow(t, b, 64)
	timetest.Until(t, "traffic flows", func() bool { return handled.len() > 500 })
	dead.Store(true)
	timetest.Until(t, "handlers run in the replica", func() bool {
		return value(t, doomed.registry, "parley_bus_in_flight", map[string]string{"stream": subject.Replies, "consumer": "tester"}) > 0
	})
	doomed.bus.Crash()
	awaitEven(t, others...)
	f.end(t, handled)
	close(stuck)
	doomed.end()
	awaitEmpty(t, b, "tester")
}

// A hanging handler prevents a second reader from handling its key while the partition moves, without a time limit: also
// when the server redelivers its delivery, because progress acknowledgements came late.
func TestMovingPartitionWaitsForRunningHandlers(t *testing.T) {
	t.Parallel()
	for name, redelivered := range map[string]bool{"in time": false, "redelivered": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bustest.Start(t).URL()
			b := bustest.Open(t, url)
			progress := bustest.CollectProgress(t, url, subject.Replies, "tester")
			handled := newSequences()
			hangs, release := make(chan struct{}), make(chan struct{})
			end := sync.OnceFunc(func() { close(release) })
			defer end()
			var calls atomic.Int64
			first := startReplica(t, url, bus.Consumer{AckWait: time.Second, Handle: func(_ context.Context, d bus.Delivery) error {
				if number(d) == 0 {
					close(hangs)
					<-release
				}
				handled.record(d)
				return nil
			}})
			awaitEven(t, first)
			publish(t, b, reply("visitor", 0))
			receive(t, "the handler", hangs)
			second := startReplica(t, url, bus.Consumer{AckWait: time.Second, Handle: func(_ context.Context, d bus.Delivery) error {
				calls.Add(1)
				if number(d) != 0 { // the redelivery may be handled again
					handled.record(d)
				}
				return nil
			}})
			awaitEven(t, first, second)
			first.stop()
			publish(t, b, reply("visitor", 1))
			timetest.Until(t, "the second replica reads all partitions", func() bool { return second.partitions(t) == 32 })
			if redelivered {
				running := progress.Next().Subject
				if err := b.JetStream().Conn().Publish(running, []byte("-NAK")); err != nil {
					t.Fatal(err)
				}
				for calls.Load() == 0 && progress.Next().Subject == running { // until the second replica holds it too
				}
			}
			progress.AwaitRepeated(beyondAckWait)
			if n := calls.Load(); n != 0 {
				t.Fatalf("got %d calls while the first delivery is running, want none", n)
			}
			end()
			first.end()
			timetest.Until(t, "both are handled", func() bool { return handled.len() == 2 })
			handled.check(t, 1, 2)
		})
	}
}

// A hanging key blocks neither the workers nor the other keys of its partition.
func TestHangingKeyDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	handled := newSequences()
	release := make(chan struct{})
	consume(t, b, bus.Consumer{Concurrency: 2, Handle: func(_ context.Context, d bus.Delivery) error {
		if strings.HasSuffix(d.Subject, "visitor0") {
			<-release
		}
		handled.record(d)
		return nil
	}})
	publishAll(t, b, 64, 0, 10) // in 32 partitions
	timetest.Until(t, "the other keys are handled", func() bool { return handled.len() == 63*10 })
	close(release)
	timetest.Until(t, "all are handled", func() bool { return handled.len() == 64*10 })
	handled.check(t, 64, 10)
}

// Thousands of keys wait concurrently in one process.
func TestThousandsOfConcurrentKeys(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	const keys = 1000
	var running atomic.Int64
	all := make(chan struct{})
	consume(t, b, bus.Consumer{Concurrency: keys, Handle: func(context.Context, bus.Delivery) error {
		if running.Add(1) == keys {
			close(all)
		}
		<-all
		return nil
	}})
	publishAll(t, b, keys, 0, 1)
	receive(t, "all handlers at once", all)
	awaitEmpty(t, b, "tester")
}

// The number of deliveries that a process holds is bounded, whatever the backlog.
func TestConsumerAppliesBackPressure(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	progress := bustest.CollectProgress(t, url, subject.Replies, "tester")
	const events = 5000 // more than twice the maximum
	for k := range 5 {
		publishAll(t, b, 250, k*4, 4)
	}
	release := make(chan struct{})
	var done atomic.Int64
	consume(t, b, bus.Consumer{Concurrency: 10, Handle: func(context.Context, bus.Delivery) error {
		<-release
		done.Add(1)
		return nil
	}})
	out := func() int {
		g, err := b.Group(t.Context(), subject.Replies, "tester")
		if err != nil {
			return -1
		}
		return g.Total().AckPending
	}
	timetest.Until(t, "the process holds the maximum", func() bool { return out() >= 2048 })
	progress.AwaitRepeated(3) // a consumer without a bound would have pulled the rest by then
	if n := out(); n > 2*2048 {
		t.Errorf("got %d deliveries pending, want at most %d", n, 2*2048)
	}
	close(release)
	timetest.Until(t, "all are handled", func() bool { return done.Load() == events })
}

// Handlers of one tenant hang, and more of its deliveries wait than the process may hold. Another tenant's later
// deliveries are handled meanwhile. The group gives up on some of the first tenant's: the rest is handled in order, and
// nothing is lost.
func TestWaitingTenantDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	const visitors, each, others, mayHold = 40, 75, 64, 2048
	publishAll(t, b, visitors, 0, each)
	for k := range others {
		publish(t, b, reply(fmt.Sprintf("visitor%d-other", k), 0))
	}
	release := make(chan struct{})
	var mu sync.Mutex
	handled, of, gaveUp := newSequences(), newSequences(), map[uint64]bool{}
	consume(t, b, bus.Consumer{
		Concurrency:   100,
		MaxAckPending: mayHold,
		ShedLoad:      true,
		Tenant: func(d bus.Delivery) string {
			_, tenant, _ := strings.Cut(d.Subject, "-")
			return tenant
		},
		Handle: func(_ context.Context, d bus.Delivery) error {
			if strings.HasSuffix(d.Subject, "-other") {
				of.record(d)
				return nil
			}
			<-release
			handled.record(d)
			return nil
		},
		GaveUp: func(_ context.Context, d bus.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			gaveUp[d.Sequence] = true
			return nil
		},
	})
	timetest.Until(t, "the other tenant's deliveries are handled", func() bool { return of.len() == others })
	if n := handled.len(); n > 0 {
		t.Errorf("got %d handled of the tenant that waits, want none", n)
	}
	close(release)
	timetest.Until(t, "all others are handled", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return handled.len()+len(gaveUp) == visitors*each
	})
	if handled.len() < mayHold/2-others {
		t.Errorf("got %d handled, want the tenant to keep half of what the process may hold", handled.len())
	}
	handled.checkOrder(t, visitors)
}

// Unordered deliveries are distributed over all replicas.
func TestUnorderedDeliveriesAreShared(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	const replicas, events = 3, 3000
	var handled [replicas]atomic.Int64
	var once sync.Map
	for i := range replicas {
		consume(t, bustest.Open(t, url), bus.Consumer{Order: bus.Unordered, Key: func(d bus.Delivery) string { return d.ID },
			Handle: func(_ context.Context, d bus.Delivery) error {
				if _, twice := once.LoadOrStore(d.ID, true); twice {
					t.Errorf("got %s twice", d.ID)
				}
				handled[i].Add(1)
				time.Sleep(100 * time.Microsecond)
				return nil
			}})
	}
	total := func() (n int64) {
		for i := range handled {
			n += handled[i].Load()
		}
		return n
	}
	publishAll(t, b, 100, 0, events/100)
	timetest.Until(t, "all are handled", func() bool { return total() == events })
	for i := range handled {
		if handled[i].Load() == 0 {
			t.Errorf("replica %d: got no deliveries, want its share", i)
		}
	}
}
