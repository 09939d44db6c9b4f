package bus

// One partition of a group that acknowledges: its durable consumer, batches and reorder buffer. The group
// starts it.

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// partitionReader reads one durable consumer while its partition is assigned to this replica.
type partitionReader struct {
	*partition
	batch int // number of deliveries that are pulled together

	mu      sync.Mutex // guards reorder and ended
	reorder *reorderBuffer
	ended   bool // the reader has returned its deliveries

	pinned   atomic.Bool   // as of the last delivery
	failed   chan error    // capacity 1: the error that ends the session
	closed   chan struct{} // capacity 1: the reorder buffer has closed
	counts   chan pendingCount
	queries  sync.WaitGroup
	declared bool // the consumer was created or found at least once
}

// pendingCount is the server's number of pending acknowledgements, with the local state before the query.
type pendingCount struct {
	pending  int // -1: the query failed
	arrivals uint64
	gaps     int
}

func newPartitionReader(g *group, d durable, batch int, stop context.CancelFunc) *partitionReader {
	r := &partitionReader{
		batch:   min(batch, g.cfg.MaxAckPending),
		reorder: newReorderBuffer(3 * g.cfg.AckWait),
		failed:  make(chan error, 1),
		closed:  make(chan struct{}, 1),
		counts:  make(chan pendingCount),
	}
	r.partition = newPartition(g.handlerCtx, g, d, newLedger(g.cfg.MaxAckPending, r.sendAck), stop)
	return r
}

// sendAck publishes an acknowledgement without waiting for a confirmation. If it is lost, the server
// redelivers and the ledger repeats it.
func (r *partitionReader) sendAck(reply, ack string) {
	_ = r.group.bus.conn.Publish(reply, []byte(ack))
}

// run reads until ctx is done. Then it returns unstarted deliveries to the server and unpins the consumer for
// the next replica. It returns when the running handlers have ended.
func (r *partitionReader) run(ctx context.Context) {
	r.group.sessions(ctx, r.durable.name, r.session)
	r.stopping.Store(true)
	r.mu.Lock()
	r.ended = true
	buffered := r.reorder.release()
	r.mu.Unlock()
	r.nakAll(append(r.group.queue.release(r.partition), buffered...))
	r.release()
	r.awaitHandlers()
	r.nakAll(r.unfinished)
}

// session creates the consumer if missing and pulls its deliveries, batch by batch, until ctx is done or a
// pull request fails. After a lost connection the batch is requested again by itself.
func (r *partitionReader) session(ctx context.Context, _ <-chan struct{}) error {
	consumer, err := r.ensureConsumer(ctx)
	if err != nil {
		return err
	}
	r.pinned.Store(false)
	takeOver := pinnedClient(consumer.CachedInfo()) != "" // from the previous reader or session
	var batch jetstream.ConsumeContext                    // nil: waiting for room
	defer func() {
		if batch != nil {
			r.stopPulling(batch)
		}
	}()
	defer r.queries.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // runs before queries.Wait
	if !r.isOpen() {
		r.queryPending(ctx, consumer, 0)
	}
	r.group.interrupted.Store(false)
	var complete <-chan struct{}
	for {
		freed := r.group.freed.wait()
		if batch == nil && r.group.hasRoom() {
			batch, err = r.pull(consumer)
			if err != nil {
				return err
			}
			complete = batch.Closed()
		}
		// after the pull request: the server may pin another that still waits, even that of a dead process
		if takeOver && batch != nil {
			takeOver = false
			r.unpin(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.failed:
			return err
		case <-complete:
			batch = nil
			complete = nil
		case <-freed:
		case <-r.membersChanged:
			takeOver = !r.pinned.Load()
		case <-r.closed:
			r.queryPending(ctx, consumer, 0)
		case c := <-r.counts:
			r.tryOpen(ctx, consumer, c)
		}
	}
}

// ensureConsumer creates or updates the consumer. The first time, if no acknowledgement is pending, it also
// sets the expected consumer sequence.
func (r *partitionReader) ensureConsumer(ctx context.Context) (jetstream.Consumer, error) {
	g := r.group
	ctx, cancel := g.bus.state.request(ctx, apiTimeout)
	defer cancel()
	partitions, err := g.bus.partitions.get(ctx, g.cfg.Stream)
	if err != nil {
		return nil, err
	}
	if !sameDurables(g.cfg.durables(partitions), r.durable) {
		wake(g.repartition)
		return nil, errRepartitioned
	}
	consumer, err := g.bus.js.CreateOrUpdateConsumer(ctx, g.cfg.Stream, g.cfg.config(r.durable))
	if err != nil {
		return nil, fmt.Errorf("creating the consumer: %w", err)
	}
	// The state in the response may be that of the server's start.
	info, err := consumer.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the consumer's state: %w", err)
	}
	if !r.declared && info.NumAckPending == 0 {
		r.reorder.expected = info.Delivered.Consumer + 1
	}
	r.declared = true
	return consumer, nil
}

// sameDurables reports whether durables still contains d with the same filters.
func sameDurables(durables []durable, d durable) bool {
	for _, other := range durables {
		if other.name == d.name {
			return len(other.filters) == len(d.filters) && (len(d.filters) == 0 || other.filters[0] == d.filters[0])
		}
	}
	return false
}

// receive passes a new delivery to the queue, or to the reorder buffer while that is closed.
func (r *partitionReader) receive(m jetstream.Msg) {
	now := time.Now()
	if m.Headers().Get(headerPin) != "" {
		r.pinned.Store(true)
	}
	meta, err := m.Metadata()
	if err != nil {
		r.fail(fmt.Errorf("decoding a delivery: %w", err))
		return
	}
	t := newTask(&nats.Msg{Subject: m.Subject(), Reply: m.Reply(), Header: m.Headers(), Data: m.Data()}, meta, now)
	t.partition = r.partition
	t.key = r.group.cfg.Key(t.delivery)
	t.of = r.group.cfg.shareOf(t.delivery)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return // the server redelivers it to the next replica
	}
	if !r.durable.shared && r.reorder.observe(meta.Sequence.Consumer, now) {
		wake(r.closed)
	}
	if !r.ledger.accept(t) {
		return
	}
	r.group.addHeld(t)
	if r.reorder.open() {
		r.group.queue.add(t)
	} else {
		r.reorder.add(t)
	}
}

// isOpen reports whether deliveries go to the queue at once, without the reorder buffer.
func (r *partitionReader) isOpen() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reorder.open()
}

// queryPending queries, after a delay, the number of pending acknowledgements on the server, and sends the
// result to r.counts.
func (r *partitionReader) queryPending(ctx context.Context, consumer jetstream.Consumer, after time.Duration) {
	r.mu.Lock()
	gaps := r.reorder.gaps
	r.mu.Unlock()
	r.queries.Go(func() {
		if sleep(ctx, after) != nil {
			return
		}
		c := pendingCount{pending: -1, arrivals: r.ledger.arrivals(), gaps: gaps}
		request, cancel := r.group.bus.state.request(ctx, releaseLimit)
		if info, err := consumer.Info(request); err == nil {
			c.pending = info.NumAckPending
		}
		cancel()
		select {
		case r.counts <- c:
		case <-ctx.Done():
		}
	})
}

// tryOpen opens the buffer once all deliveries that the server counts as pending are held here. It counts
// only deliveries held both before and after the query: the response may or may not include those that
// arrived or finished in between. While another replica reports running handlers, the buffer stays closed without a
// time limit, even if the server has redelivered what those handle because their progress came late; and so it does
// while the server does not answer, and redelivers nothing.
func (r *partitionReader) tryOpen(ctx context.Context, consumer jetstream.Consumer, c pendingCount) {
	now := time.Now()
	r.mu.Lock()
	complete := c.pending >= 0 && c.gaps == r.reorder.gaps && c.pending <= r.ledger.stillHeld(c.arrivals)
	if c.pending < 0 || r.group.members.finishing(r.durable.name) {
		complete = false
		r.reorder.extend(now)
	}
	for _, t := range r.reorder.tryRelease(complete, now) {
		r.group.queue.add(t)
	}
	open := r.reorder.open()
	r.mu.Unlock()
	if !open {
		r.queryPending(ctx, consumer, pendingPause)
	}
}

// pendingPause is the delay between two queries of the pending count.
const pendingPause = 40 * time.Millisecond

// nakAll returns tasks to the server in stream order, for the next replica.
func (r *partitionReader) nakAll(tasks []*task) {
	sortTasks(tasks)
	for _, t := range tasks {
		r.ledger.nak(t)
		r.group.removeHeld(t)
	}
}

// release unpins the consumer so that the next replica can start at once. The server has processed the
// returned deliveries by then.
func (r *partitionReader) release() {
	if r.durable.shared || !r.pinned.Load() || !r.group.bus.conn.IsConnected() {
		return
	}
	r.unpin(context.Background())
}

// unpin clears the pin of the consumer (NATS ADR-42); the server pins the replica of the next request. If it
// fails, the pin expires.
func (r *partitionReader) unpin(ctx context.Context) {
	ctx, cancel := r.group.bus.state.request(ctx, releaseLimit)
	defer cancel()
	request, err := json.Marshal(map[string]string{"group": priorityGroup})
	if err != nil {
		return
	}
	api := "$JS.API.CONSUMER.UNPIN." + r.group.cfg.Stream + "." + r.durable.name
	_, _ = r.group.bus.conn.RequestWithContext(ctx, api, request)
}
