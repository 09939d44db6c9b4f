package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// partitionReader reads one durable consumer while its partition is assigned to this replica.
type partitionReader struct {
	*partition
	reorder *reorderBuffer
	pull    puller

	incoming chan *nats.Msg
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

func newPartitionReader(g *group, s slot, batch int, stop context.CancelFunc) *partitionReader {
	conn := g.bus.conn
	batch = min(batch, g.cfg.MaxAckPending)
	r := &partitionReader{
		reorder: newReorderBuffer(3 * g.cfg.AckWait),
		pull: puller{
			conn:    conn,
			subject: "$JS.API.CONSUMER.MSG.NEXT." + g.cfg.Stream + "." + s.name,
			inbox:   conn.NewInbox(),
			batch:   batch,
			expires: pullExpires,
			shared:  s.shared,
			hasRoom: g.hasRoom,
			freed:   &g.freed,
		},
		incoming: make(chan *nats.Msg, 4*batch+64), // more than the server sends before it waits
		counts:   make(chan pendingCount),
	}
	r.partition = newPartition(g, s, newLedger(2*g.cfg.MaxAckPending, r.sendAck), stop)
	return r
}

// sendAck publishes an acknowledgement without waiting for a confirmation. If it is lost, the server redelivers and the ledger repeats
// it.
func (r *partitionReader) sendAck(reply, ack string) {
	_ = r.group.bus.conn.Publish(reply, []byte(ack))
}

// run reads until ctx is done. Then it returns unstarted deliveries to the server and unpins the consumer for the next replica. It
// returns when the running handlers have ended.
func (r *partitionReader) run(ctx context.Context) {
	r.sessions(ctx)
	r.stopping.Store(true)
	r.nakAll(append(r.group.queue.release(r.partition), r.reorder.release()...))
	r.release()
	<-r.idle
	r.nakAll(r.unfinished)
}

// sessions subscribes and runs sessions until ctx is done, with a new session after every error.
func (r *partitionReader) sessions(ctx context.Context) {
	sub, err := r.group.bus.conn.ChanSubscribe(r.pull.inbox, r.incoming)
	if err != nil { // the bus is closed
		<-ctx.Done()
		return
	}
	r.group.sessions(ctx, r.slot.name, r.session)
	r.unsubscribe(sub)
}

// session creates the consumer if missing and pulls its deliveries, until ctx is done, the connection was re-established, or the consumer
// appears to be gone.
func (r *partitionReader) session(ctx context.Context, up <-chan struct{}) error {
	consumer, err := r.ensureConsumer(ctx)
	if err != nil {
		return err
	}
	if err := r.pull.restart(); err != nil {
		return err
	}
	if pin := pinnedClient(consumer.CachedInfo()); pin != "" && pin != r.pull.pin {
		r.unpin(ctx)
	}
	silence := time.NewTimer(r.pull.silenceTimeout())
	defer silence.Stop()
	defer r.queries.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // runs before queries.Wait
	if !r.reorder.open() {
		r.queryPending(ctx, consumer, 0)
	}
	r.group.interrupted.Store(false)
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-silence.C:
			if silence.Reset(r.pull.silenceTimeout()); r.pull.postponed == nil {
				err = errSilent
			}
		case <-up: // requests may have been lost with the old connection
			return nil
		case <-r.pull.postponed:
			err = r.pull.request()
		case <-r.membersChanged:
			if r.pull.pin == "" {
				r.unpin(ctx)
			}
		case m := <-r.incoming:
			silence.Reset(r.pull.silenceTimeout())
			err = r.receiveAll(ctx, consumer, m)
		case c := <-r.counts:
			r.tryOpen(ctx, consumer, c)
		}
		if err != nil {
			return err
		}
	}
}

// ensureConsumer creates or updates the consumer. The first time, if no acknowledgement is pending, it also sets the expected consumer
// sequence.
func (r *partitionReader) ensureConsumer(ctx context.Context) (jetstream.Consumer, error) {
	g := r.group
	ctx, cancel := g.bus.state.request(ctx, apiTimeout)
	defer cancel()
	partitions, err := g.bus.partitions.get(ctx, g.cfg.Stream)
	if err != nil {
		return nil, err
	}
	if !sameSlots(g.cfg.slots(partitions), r.slot) {
		wake(g.repartition)
		return nil, errRepartitioned
	}
	consumer, err := g.bus.js.CreateOrUpdateConsumer(ctx, g.cfg.Stream, g.cfg.config(r.slot))
	if err != nil {
		return nil, fmt.Errorf("creating the consumer: %w", err)
	}
	if info := consumer.CachedInfo(); !r.declared && info.NumAckPending == 0 {
		r.reorder.expected = info.Delivered.Consumer + 1
	}
	r.declared = true
	return consumer, nil
}

// sameSlots reports whether slots still contains s with the same filters.
func sameSlots(slots []slot, s slot) bool {
	for _, other := range slots {
		if other.name == s.name {
			return len(other.filters) == len(s.filters) && (len(s.filters) == 0 || other.filters[0] == s.filters[0])
		}
	}
	return false
}

// receiveAll handles m and the messages buffered after it, up to a batch.
func (r *partitionReader) receiveAll(ctx context.Context, consumer jetstream.Consumer, m *nats.Msg) error {
	for range r.pull.batch {
		if err := r.receive(ctx, consumer, m); err != nil {
			return err
		}
		select {
		case m = <-r.incoming:
		default:
			return nil
		}
	}
	return r.receive(ctx, consumer, m)
}

// receive handles one message of the session: a delivery or the status of a request.
func (r *partitionReader) receive(ctx context.Context, consumer jetstream.Consumer, m *nats.Msg) error {
	if m.Reply == "" {
		return r.pull.status(m)
	}
	now := time.Now()
	pin := m.Header.Get(headerPin)
	t, number, err := newTask(m, now)
	if err != nil {
		return fmt.Errorf("decoding a delivery: %w", err)
	}
	closed := !r.slot.shared && r.reorder.observe(number, now)
	if r.ledger.accept(t) {
		t.partition = r.partition
		t.key = r.group.cfg.Key(t.delivery)
		r.group.addHeld(t)
		r.admit(t)
	}
	if closed {
		r.queryPending(ctx, consumer, 0)
	}
	return r.pull.countDelivery(pin)
}

func (r *partitionReader) admit(t *task) {
	if r.reorder.open() {
		r.group.queue.add(t)
		return
	}
	r.reorder.add(t)
}

// queryPending queries, after a delay, the number of pending acknowledgements on the server, and sends the result to r.counts.
func (r *partitionReader) queryPending(ctx context.Context, consumer jetstream.Consumer, after time.Duration) {
	gaps := r.reorder.gaps
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

// tryOpen opens the buffer once all deliveries that the server counts as pending are held here. It counts only deliveries held both
// before and after the query: the response may or may not include those that arrived or finished in between. While another replica
// reports running handlers, the buffer has no time limit.
func (r *partitionReader) tryOpen(ctx context.Context, consumer jetstream.Consumer, c pendingCount) {
	complete := c.pending >= 0 && c.gaps == r.reorder.gaps && c.pending <= r.ledger.stillHeld(c.arrivals)
	now := time.Now()
	if r.group.members.finishing(r.slot.name) {
		r.reorder.extend(now)
	}
	for _, t := range r.reorder.tryRelease(complete, now) {
		r.group.queue.add(t)
	}
	if !r.reorder.open() {
		r.queryPending(ctx, consumer, pendingPause)
	}
}

// pendingPause is the delay between two queries of the pending count.
const pendingPause = 40 * time.Millisecond

// unsubscribe drains the subscription. Deliveries that arrive until then are returned to the server.
func (r *partitionReader) unsubscribe(sub *nats.Subscription) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if conn := r.group.bus.conn; sub.Drain() == nil && conn.IsConnected() {
		_ = conn.FlushWithContext(ctx) // fails only while NATS is disconnected; then nothing arrives
	}
	for {
		select {
		case m := <-r.incoming:
			r.collectLate(m)
		default:
			return
		}
	}
}

func (r *partitionReader) collectLate(m *nats.Msg) {
	if m.Reply == "" {
		return
	}
	if pin := m.Header.Get(headerPin); pin != "" {
		r.pull.pin = pin
	}
	if t, _, err := newTask(m, time.Now()); err == nil && r.ledger.accept(t) {
		t.partition = r.partition
		r.group.addHeld(t)
		r.reorder.add(t) // run returns it to the server, in order
	}
}

// nakAll returns tasks to the server in stream order, for the next replica.
func (r *partitionReader) nakAll(tasks []*task) {
	sortTasks(tasks)
	for _, t := range tasks {
		r.ledger.nak(t)
		r.group.removeHeld(t)
	}
}

// release unpins the consumer so that the next replica can start at once. The server has processed the returned deliveries by then.
func (r *partitionReader) release() {
	if r.slot.shared || r.pull.pin == "" || !r.group.bus.conn.IsConnected() {
		return
	}
	r.unpin(context.Background())
}

// unpin clears the pin of the consumer (NATS ADR-42); the server pins the replica of the next request. If it fails, the pin expires.
func (r *partitionReader) unpin(ctx context.Context) {
	ctx, cancel := r.group.bus.state.request(ctx, releaseLimit)
	defer cancel()
	request, err := json.Marshal(map[string]string{"group": priorityGroup})
	if err == nil {
		_, _ = r.group.bus.conn.RequestWithContext(ctx, "$JS.API.CONSUMER.UNPIN."+r.group.cfg.Stream+"."+r.slot.name, request)
	}
}
