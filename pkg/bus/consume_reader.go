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

// partitionReader takes the deliveries of one durable consumer while this replica owns it.
type partitionReader struct {
	*partition
	reorder *reorderBuffer
	pull    puller

	incoming chan *nats.Msg
	counts   chan pendingCount
	asking   sync.WaitGroup
	began    bool // a session has begun before
}

// pendingCount is the server's answer to how many deliveries it has out, with the state of things here when it was asked.
type pendingCount struct {
	out  int // -1: no answer
	mark uint64
	gaps int
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
		incoming: make(chan *nats.Msg, 4*batch+64), // more than the server may have out at once
		counts:   make(chan pendingCount),
	}
	r.partition = newPartition(g, s, newLedger(2*g.cfg.MaxAckPending, r.sendAck), stop)
	return r
}

// sendAck tells the server about a delivery. It needs no answer: what does not arrive is noticed when the server delivers
// the same again.
func (r *partitionReader) sendAck(reply, ack string) {
	_ = r.group.bus.conn.Publish(reply, []byte(ack))
}

// run reads until ctx is done. Then it gives back what no handler has begun, lets the next replica begin, and returns when the
// handlers that run have ended.
func (r *partitionReader) run(ctx context.Context) {
	r.sessions(ctx)
	r.stopping.Store(true)
	r.giveBack(append(r.group.queue.release(r.partition), r.reorder.release()...))
	r.release()
	<-r.idle
	r.giveBack(r.unfinished)
}

// sessions listens until ctx is done; whenever something is wrong with a session, it begins another.
func (r *partitionReader) sessions(ctx context.Context) {
	sub, err := r.group.bus.conn.ChanSubscribe(r.pull.inbox, r.incoming)
	if err != nil { // the bus is closed
		<-ctx.Done()
		return
	}
	r.group.sessions(ctx, r.slot.name, r.session)
	r.hangUp(sub)
}

// session makes sure of the consumer and takes its deliveries, until ctx is done or the server behaves as if the consumer
// did not exist.
func (r *partitionReader) session(ctx context.Context, up <-chan struct{}) error {
	consumer, err := r.declare(ctx)
	if err != nil {
		return err
	}
	if err := r.pull.again(); err != nil {
		return err
	}
	if pin := pinned(consumer.CachedInfo()); pin != "" && pin != r.pull.pin {
		r.unpin(ctx)
	}
	silence := time.NewTimer(r.pull.patience())
	defer silence.Stop()
	defer r.asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before the wait above
	if !r.reorder.open() {
		r.askPending(ctx, consumer, 0)
	}
	r.group.interrupted.Store(false)
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-silence.C:
			if silence.Reset(r.pull.patience()); r.pull.postponed == nil {
				err = errSilent
			}
		case <-up: // requests may have died with the old connection
			return nil
		case <-r.pull.postponed:
			err = r.pull.ask()
		case <-r.look:
			if r.pull.pin == "" {
				r.unpin(ctx)
			}
		case m := <-r.incoming:
			silence.Reset(r.pull.patience())
			err = r.receiveAll(ctx, consumer, m)
		case c := <-r.counts:
			r.tryOpen(ctx, consumer, c)
		}
		if err != nil {
			return err
		}
	}
}

// declare makes sure of the consumer. At the first time it also tells where the deliveries go on, if none is out.
func (r *partitionReader) declare(ctx context.Context) (jetstream.Consumer, error) {
	g := r.group
	ctx, cancel := g.bus.state.request(ctx, apiTimeout)
	defer cancel()
	partitions, err := g.bus.partitions.of(ctx, g.cfg.Stream)
	if err != nil {
		return nil, err
	}
	if !sameSlots(g.cfg.slots(partitions), r.slot) {
		wake(g.repartition)
		return nil, errRepartitioned
	}
	consumer, err := g.bus.js.CreateOrUpdateConsumer(ctx, g.cfg.Stream, g.cfg.config(r.slot))
	if err != nil {
		return nil, fmt.Errorf("declaring the consumer: %w", err)
	}
	if info := consumer.CachedInfo(); !r.began && info.NumAckPending == 0 {
		r.reorder.expected = info.Delivered.Consumer + 1
	}
	r.began = true
	return consumer, nil
}

// sameSlots reports whether a slot is still one of those of the group.
func sameSlots(slots []slot, s slot) bool {
	for _, other := range slots {
		if other.name == s.name {
			return len(other.filters) == len(s.filters) && (len(s.filters) == 0 || other.filters[0] == s.filters[0])
		}
	}
	return false
}

// receiveAll takes m and what else has arrived.
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

// receive takes one message of the session: a delivery or a word about the requests.
func (r *partitionReader) receive(ctx context.Context, consumer jetstream.Consumer, m *nats.Msg) error {
	if m.Reply == "" {
		return r.pull.status(m)
	}
	now := time.Now()
	pin := m.Header.Get(headerPin)
	t, number, err := newTask(m, now)
	if err != nil {
		return fmt.Errorf("reading a delivery: %w", err)
	}
	closed := !r.slot.shared && r.reorder.arrive(number, now)
	if r.ledger.take(t) {
		t.partition = r.partition
		t.key = r.group.cfg.Key(t.delivery)
		r.group.took(t)
		r.admit(t)
	}
	if closed {
		r.askPending(ctx, consumer, 0)
	}
	return r.pull.count(pin)
}

func (r *partitionReader) admit(t *task) {
	if r.reorder.open() {
		r.group.queue.add(t)
		return
	}
	r.reorder.keep(t)
}

// askPending asks the server, after a while, how many deliveries it has out.
func (r *partitionReader) askPending(ctx context.Context, consumer jetstream.Consumer, after time.Duration) {
	gaps := r.reorder.gaps
	r.asking.Go(func() {
		if sleep(ctx, after) != nil {
			return
		}
		c := pendingCount{out: -1, mark: r.ledger.mark(), gaps: gaps}
		request, cancel := r.group.bus.state.request(ctx, releaseLimit)
		if info, err := consumer.Info(request); err == nil {
			c.out = info.NumAckPending
		}
		cancel()
		select {
		case r.counts <- c:
		case <-ctx.Done():
		}
	})
}

// tryOpen lets the deliveries go on if all that the server has out is here. It counts only what was here both before and after
// the question: what came or went in between may or may not be in the answer. While another replica says that its handlers still
// run, no limit opens the buffer.
func (r *partitionReader) tryOpen(ctx context.Context, consumer jetstream.Consumer, c pendingCount) {
	complete := c.out >= 0 && c.gaps == r.reorder.gaps && c.out <= r.ledger.stillHeld(c.mark)
	now := time.Now()
	if r.group.members.finishing(r.slot.name) {
		r.reorder.extend(now)
	}
	for _, t := range r.reorder.try(complete, now) {
		r.group.queue.add(t)
	}
	if !r.reorder.open() {
		r.askPending(ctx, consumer, pendingPause)
	}
}

// pendingPause is the wait between two questions for what is out.
const pendingPause = 40 * time.Millisecond

// hangUp ends the subscription. What the server had sent before it heard of that goes back to it.
func (r *partitionReader) hangUp(sub *nats.Subscription) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if conn := r.group.bus.conn; sub.Drain() == nil && conn.IsConnected() {
		_ = conn.FlushWithContext(ctx) // fails where NATS is not connected, and then nothing arrives
	}
	for {
		select {
		case m := <-r.incoming:
			r.refuse(m)
		default:
			return
		}
	}
}

func (r *partitionReader) refuse(m *nats.Msg) {
	if m.Reply == "" {
		return
	}
	if pin := m.Header.Get(headerPin); pin != "" {
		r.pull.pin = pin
	}
	if t, _, err := newTask(m, time.Now()); err == nil && r.ledger.take(t) {
		t.partition = r.partition
		r.group.took(t)
		r.reorder.keep(t) // run gives it back, in its turn
	}
}

// giveBack returns tasks to the server, for the next replica.
func (r *partitionReader) giveBack(tasks []*task) {
	sortTasks(tasks)
	for _, t := range tasks {
		r.ledger.giveBack(t)
		r.group.dropped(t)
	}
}

// release lets the next replica begin at once, after the server has heard of what was given back.
func (r *partitionReader) release() {
	if r.slot.shared || r.pull.pin == "" || !r.group.bus.conn.IsConnected() {
		return
	}
	r.unpin(context.Background())
}

// unpin takes the consumer from the replica that the server has pinned (JetStream ADR-42). The next request gets it. Where that
// fails the pin runs out by itself.
func (r *partitionReader) unpin(ctx context.Context) {
	ctx, cancel := r.group.bus.state.request(ctx, releaseLimit)
	defer cancel()
	request, err := json.Marshal(map[string]string{"group": priorityGroup})
	if err == nil {
		_, _ = r.group.bus.conn.RequestWithContext(ctx, "$JS.API.CONSUMER.UNPIN."+r.group.cfg.Stream+"."+r.slot.name, request)
	}
}
