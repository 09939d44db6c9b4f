package bus

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	minHeld      = 2048     // deliveries that a group holds in a process before it asks for no more, at least
	maxHeldBytes = 64 << 20 // and their payloads
	minBatch     = 16
	maxBatch     = 256
)

// group is one call of Consume: this replica's share of a consumer's partitions, with one queue for all of them.
type group struct {
	bus      *Bus
	cfg      Consumer
	handlers context.Context
	queue    *keyedQueue
	members  *members
	maxHeld  int64

	positions *positions // nil: deliveries are acknowledged

	failing     atomic.Bool // the last try failed because a dependency is unavailable
	interrupted atomic.Bool // the interruption has been logged
	held, bytes atomic.Int64
	freed       signal // there is room again
	repartition chan struct{}

	mu      sync.Mutex
	readers map[string]*partition // by slot: those that read, and those that wait for their last handlers
	ending  sync.WaitGroup

	handledOK prometheus.Counter
}

func newGroup(b *Bus, c Consumer, handlers context.Context) *group {
	b.metrics.begin(c)
	g := &group{
		bus: b, cfg: c, handlers: handlers,
		members:     newMembers(b.conn, c.Stream, c.Durable),
		maxHeld:     int64(max(minHeld, 2*c.Concurrency)),
		readers:     make(map[string]*partition),
		repartition: make(chan struct{}, 1),
		handledOK:   b.metrics.handled.WithLabelValues(c.Stream, c.Durable, resultOK),
	}
	g.queue = newKeyedQueue(c.Concurrency, c.MaxBatch, g.handleAll)
	return g
}

// run reads this replica's share until ctx is done and all handlers have ended.
func (g *group) run(ctx context.Context) {
	stopAnswering, stopCaring := g.answerQuestions(), g.care()
	for ctx.Err() == nil {
		partitions, err := g.bus.partitions.await(ctx, g.cfg.Stream)
		if err == nil {
			g.share(ctx, g.cfg.slots(partitions))
		}
	}
	stopAnswering()
	stopCaring()
	if g.bus.conn.IsConnected() {
		flush, cancel := g.bus.state.request(context.Background(), releaseLimit)
		defer cancel()
		_ = g.bus.conn.FlushWithContext(flush) // what the server does not hear of it delivers again
	}
}

// share reads this replica's partitions, until ctx is done or the stream has another number of partitions.
func (g *group) share(ctx context.Context, slots []slot) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	if g.cfg.Positions {
		stopPositions := g.readPositions(slots)
		defer stopPositions()
	}
	if g.cfg.Order == Unordered {
		g.start(reading, slots, slots[0])
		select {
		case <-ctx.Done():
		case <-g.repartition:
		}
	} else {
		stopListening := g.members.listen()
		defer stopListening()
		g.spread(reading, slots)
	}
	g.mu.Lock()
	for _, r := range g.readers {
		r.stop()
	}
	g.mu.Unlock()
	g.leave()
}

// leave returns when the last handler has ended. Until then it states to the other replicas in which partitions handlers run.
func (g *group) leave() {
	ended := make(chan struct{})
	go func() { defer close(ended); g.ending.Wait() }()
	tick := time.NewTicker(memberHeartbeat)
	defer tick.Stop()
	for {
		g.state(memberState{Leaving: true})
		select {
		case <-ended:
			g.state(memberState{Left: true})
			return
		case <-tick.C:
		case <-g.members.changed: // a reader has ended
		case <-g.members.asked:
		}
	}
}

// spread starts and stops readers as replicas join and leave.
func (g *group) spread(ctx context.Context, slots []slot) {
	g.hello(ctx)
	tick := time.NewTicker(memberHeartbeat)
	defer tick.Stop()
	up := g.bus.linkUp.wait()
	for ctx.Err() == nil {
		g.assign(ctx, slots)
		select {
		case <-ctx.Done():
			return
		case <-g.repartition:
			return
		case <-g.members.changed:
			g.recheck()
		case <-g.members.asked:
		case <-up: // heartbeats could not arrive
			up = g.bus.linkUp.wait()
			g.members.refresh(time.Now())
		case now := <-tick.C:
			if g.bus.conn.IsConnected() {
				g.members.expire(now)
			} else {
				g.members.refresh(now)
			}
		}
		g.state(memberState{})
	}
}

// hello waits for the states of the other replicas before the first partition is taken.
func (g *group) hello(ctx context.Context) {
	g.state(memberState{Hello: true})
	_ = sleep(ctx, memberHello)
}

// assign starts and stops readers so that they are this replica's share.
func (g *group) assign(ctx context.Context, slots []slot) {
	owners := assign(len(slots), g.members.active())
	mine := 0
	for i, s := range slots {
		g.mu.Lock()
		r := g.readers[s.name]
		g.mu.Unlock()
		switch ours := owners[i] == g.members.self; {
		case ours && r == nil:
			g.start(ctx, slots, s)
			mine++
		case ours:
			mine++
		case r != nil:
			r.stop()
		}
	}
	g.bus.metrics.partitions.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(float64(mine))
}

// start reads a slot until the reader is stopped.
func (g *group) start(ctx context.Context, slots []slot, s slot) {
	ctx, stop := context.WithCancel(ctx)
	p, run := g.reader(slots, s, stop)
	g.mu.Lock()
	g.readers[s.name] = p
	g.mu.Unlock()
	g.ending.Go(func() {
		defer stop()
		run(ctx)
		g.mu.Lock()
		delete(g.readers, s.name)
		g.mu.Unlock()
		wake(g.members.changed) // it may be ours again
	})
}

// reader returns what reads a slot.
func (g *group) reader(slots []slot, s slot, stop context.CancelFunc) (p *partition, run func(context.Context)) {
	if g.positions != nil {
		r := newPositionReader(g.positions, s, stop)
		return r.partition, r.run
	}
	r := newPartitionReader(g, s, min(maxBatch, max(minBatch, int(g.maxHeld)/len(slots))), stop)
	return r.partition, r.run
}

// state says which partitions are being finished.
func (g *group) state(s memberState) {
	g.mu.Lock()
	for name, r := range g.readers {
		if r.stopping.Load() {
			s.Finishing = append(s.Finishing, name)
		}
	}
	g.mu.Unlock()
	slices.Sort(s.Finishing)
	g.members.publish(s)
}

// recheck makes readers that have received nothing yet check whether a dead replica still holds their partition.
func (g *group) recheck() {
	for _, r := range g.all() {
		wake(r.look)
	}
}

func (g *group) all() []*partition {
	g.mu.Lock()
	defer g.mu.Unlock()
	readers := make([]*partition, 0, len(g.readers))
	for _, r := range g.readers {
		readers = append(readers, r)
	}
	return readers
}

// hasRoom reports whether more deliveries may be asked for.
func (g *group) hasRoom() bool {
	return g.held.Load() < g.maxHeld && g.bytes.Load() < maxHeldBytes
}

func (g *group) took(t *task) {
	g.held.Add(1)
	g.bytes.Add(int64(len(t.delivery.Data)))
}

func (g *group) dropped(t *task) {
	bytes := g.bytes.Add(-int64(len(t.delivery.Data)))
	held := g.held.Add(-1)
	if held == g.maxHeld*3/4 || bytes < maxHeldBytes && bytes+int64(len(t.delivery.Data)) >= maxHeldBytes {
		g.freed.send()
	}
}

// care sends the server progress acknowledgements for the deliveries that are held here, and measures them, until stop is called.
func (g *group) care() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(g.cfg.AckWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				oldest := time.Time{}
				for _, r := range g.all() {
					oldest = earlier(oldest, r.ledger.touch(now, g.cfg.AckWait/4))
				}
				g.gauge(now, oldest)
			}
		}
	}()
	stopGauging := g.keepGauging()
	return func() {
		stopGauging()
		close(done)
		<-ended
		g.bus.metrics.end(g.cfg)
	}
}

// earlier returns the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func pinned(info *jetstream.ConsumerInfo) (pin string) {
	for _, g := range info.PriorityGroups {
		if g.Group == priorityGroup {
			return g.PinnedClientID
		}
	}
	return ""
}
