package bus

// One replica of a consumer group: it owns the readers of its partitions, starts and stops them as replicas
// come and go, and bounds what they hold. Consume runs it.

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// minHeld is the lower bound of the number of held deliveries at which a group stops pulling.
	minHeld      = 2048
	maxHeldBytes = 32 << 20 // memory of held deliveries at which a group stops pulling
	taskBytes    = 1 << 10  // memory of a held delivery beside its payload
	// mostRequested is the number of deliveries in the batches of all partitions, unless there are more than 32. They
	// come on top of those that are held, of any size: a batch that has been requested is not given up, and the largest
	// message has 64 KiB of data.
	mostRequested      = 512
	minBatch, maxBatch = 16, 256
)

// group is one replica of a consumer group: a call of Consume. It reads its assigned partitions into one queue.
type group struct {
	bus        *Bus
	cfg        Consumer
	handlerCtx context.Context // of the calls of the handlers; outlives the context of Consume
	queue      *keyedQueue
	members    *members
	maxHeld    int64

	offsets *offsetConsumer // nil: the group acknowledges deliveries

	failing     atomic.Bool // a dependency is unavailable
	interrupted atomic.Bool // the current interruption has been logged
	held, bytes atomic.Int64
	freed       signal // sent when held falls below the limits
	pressure    pressure
	repartition chan struct{}

	mu         sync.Mutex            // guards partitions
	partitions map[string]*partition // by durable name; includes stopping partitions with running handlers
	reading    sync.WaitGroup        // the goroutines of the readers, one for each of partitions

	handledOK prometheus.Counter
}

func newGroup(b *Bus, c Consumer, handlerCtx context.Context) *group {
	b.metrics.begin(c)
	g := &group{
		bus: b, cfg: c, handlerCtx: handlerCtx,
		members:     newMembers(b.conn, c.Stream, c.Durable),
		maxHeld:     int64(max(minHeld, 2*c.Concurrency, c.MaxAckPending)),
		partitions:  make(map[string]*partition),
		repartition: make(chan struct{}, 1),
		handledOK:   b.metrics.handled.WithLabelValues(c.Stream, c.Durable, resultOK),
	}
	g.queue = newKeyedQueue(c.Concurrency, c.MaxBatch, c.Tenant != nil, g.handleAll)
	return g
}

// run handles deliveries until ctx is done and all handlers have returned.
func (g *group) run(ctx context.Context) {
	stopServing, stopProgress := g.serveProgress(), g.sendProgress()
	for ctx.Err() == nil {
		partitions, err := g.bus.partitions.await(ctx, g.cfg.Stream)
		if err == nil {
			g.consume(ctx, g.cfg.durables(partitions))
		}
	}
	stopServing()
	stopProgress()
	if g.bus.conn.IsConnected() {
		flush, cancel := g.bus.state.request(context.Background(), releaseLimit)
		defer cancel()
		_ = g.bus.conn.FlushWithContext(flush) // the server redelivers if acknowledgements are lost
	}
}

// consume reads the assigned partitions until ctx is done or the stream's number of partitions has changed.
func (g *group) consume(ctx context.Context, durables []durable) {
	readerCtx, stop := context.WithCancel(ctx)
	defer stop()
	if g.cfg.Offsets {
		stopReading := g.readWithOffsets(durables)
		defer stopReading()
	}
	if g.cfg.Order == Unordered {
		g.start(readerCtx, durables, durables[0])
		select {
		case <-ctx.Done():
		case <-g.repartition:
		}
	} else {
		stopListening := g.members.listen()
		defer stopListening()
		g.rebalance(readerCtx, durables)
	}
	g.mu.Lock()
	for _, p := range g.partitions {
		p.stop()
	}
	g.mu.Unlock()
	g.leave()
}

// leave waits for the last handlers. Until then it publishes the partitions in which handlers still run.
func (g *group) leave() {
	ended := make(chan struct{})
	go func() { defer close(ended); g.reading.Wait() }()
	tick := time.NewTicker(memberHeartbeat)
	defer tick.Stop()
	for {
		g.publishState(memberState{Leaving: true})
		select {
		case <-ended:
			g.publishState(memberState{Left: true})
			return
		case <-tick.C:
		case <-g.members.changed: // a reader has ended
		case <-g.members.stateRequested:
		}
	}
}

// rebalance starts and stops readers as replicas join and leave, until ctx is done or the stream's number of
// partitions has changed.
func (g *group) rebalance(ctx context.Context, durables []durable) {
	g.discoverMembers(ctx)
	tick := time.NewTicker(memberHeartbeat)
	defer tick.Stop()
	up := g.bus.connUp.wait()
	for ctx.Err() == nil {
		g.assign(ctx, durables)
		select {
		case <-ctx.Done():
			return
		case <-g.repartition:
			return
		case <-g.members.changed:
			g.recheckPins()
		case <-g.members.stateRequested:
		case <-up: // no heartbeats arrived while the connection was lost
			up = g.bus.connUp.wait()
			g.members.refresh(time.Now())
		case <-tick.C:
			if g.bus.conn.IsConnected() {
				g.members.expire(time.Now())
			} else {
				g.members.refresh(time.Now())
			}
		}
		g.publishState(memberState{})
	}
}

// discoverMembers asks the other replicas for their state and waits for the responses, before the first assignment.
func (g *group) discoverMembers(ctx context.Context) {
	g.publishState(memberState{RequestState: true})
	_ = sleep(ctx, memberDiscovery)
}

// assign computes the assignment, starts the readers of this replica's partitions and stops all others.
func (g *group) assign(ctx context.Context, durables []durable) {
	active := g.members.active()
	g.cfg.Replicas.set(len(active))
	owners := assign(len(durables), active)
	mine := 0
	for i, d := range durables {
		g.mu.Lock()
		p := g.partitions[d.name]
		g.mu.Unlock()
		switch ours := owners[i] == g.members.self; {
		case ours && p == nil:
			g.start(ctx, durables, d)
			mine++
		case ours:
			mine++
		case p != nil:
			p.stop()
		}
	}
	g.bus.metrics.partitions.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(float64(mine))
}

// start starts the reader of a durable consumer.
func (g *group) start(ctx context.Context, durables []durable, d durable) {
	ctx, stop := context.WithCancel(ctx)
	p, run := g.reader(durables, d, stop)
	g.mu.Lock()
	g.partitions[d.name] = p
	g.mu.Unlock()
	g.reading.Go(func() {
		defer stop()
		run(ctx)
		g.mu.Lock()
		delete(g.partitions, d.name)
		g.mu.Unlock()
		wake(g.members.changed) // the partition may have been assigned to this replica again
	})
}

// reader returns the partition of a durable consumer and the function that reads it.
func (g *group) reader(
	durables []durable,
	d durable,
	stop context.CancelFunc,
) (p *partition, run func(context.Context)) {
	if g.offsets != nil {
		r := newOffsetReader(g.offsets, d, stop)
		return r.partition, r.run
	}
	r := newPartitionReader(g, d, batchOf(len(durables)), stop)
	return r.partition, r.run
}

// batchOf returns the number of deliveries that a partition requests together.
func batchOf(partitions int) int {
	return min(maxBatch, max(minBatch, mostRequested/partitions))
}

// publishState publishes s with the names of the stopping partitions.
func (g *group) publishState(s memberState) {
	g.mu.Lock()
	for name, p := range g.partitions {
		if p.stopping.Load() {
			s.Finishing = append(s.Finishing, name)
		}
	}
	g.mu.Unlock()
	slices.Sort(s.Finishing)
	g.members.publish(s)
}

// recheckPins notifies readers that the members have changed. A reader without the pin then clears it: a dead
// replica may hold it.
func (g *group) recheckPins() {
	for _, p := range g.activePartitions() {
		wake(p.membersChanged)
	}
}

// activePartitions returns the partitions that this replica reads or whose handlers still run here.
func (g *group) activePartitions() []*partition {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.partitions))
}

// hasRoom reports whether the limits allow more pulls.
func (g *group) hasRoom() bool {
	return g.held.Load() < g.maxHeld && g.bytes.Load() < maxHeldBytes
}

func (g *group) addHeld(t *task) {
	g.bus.marks.received(t.delivery)
	g.held.Add(1)
	g.bytes.Add(t.bytes())
}

func (g *group) removeHeld(t *task) {
	bytes := g.bytes.Add(-t.bytes())
	held := g.held.Add(-1)
	if held == g.maxHeld*15/16 || bytes < maxHeldBytes && bytes+t.bytes() >= maxHeldBytes {
		g.freed.send()
	}
}

// sendProgress sends progress acknowledgements for held deliveries, updates the gauges and sheds load, until stop is
// called.
func (g *group) sendProgress() (stop func()) {
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
				for _, p := range g.activePartitions() {
					oldest = earlier(oldest, p.ledger.sendProgress(now, g.cfg.AckWait/4))
				}
				g.gauge(now, oldest)
				g.shedLoad(now)
			}
		}
	}()
	stopGauging := g.startGauges()
	return func() {
		stopGauging()
		close(done)
		<-ended
		g.bus.metrics.end(g.cfg)
	}
}

// earlier returns the earlier of two times; the zero time means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func pinnedClient(info *jetstream.ConsumerInfo) (pin string) {
	for _, g := range info.PriorityGroups {
		if g.Group == priorityGroup {
			return g.PinnedClientID
		}
	}
	return ""
}
