package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	defaultWorkers       = 16
	defaultMaxAckPending = 1000
	defaultAckWait       = 6 * time.Second
	defaultMaxBatch      = 128

	minSessionWait = 50 * time.Millisecond
	maxSessionWait = 2 * time.Second
	apiTimeout     = 5 * time.Second
	farewellLimit  = 2 * time.Second
)

// Delivery is one message of a stream on its way to a handler.
type Delivery struct {
	Stream   string
	Subject  string
	Data     []byte
	Header   nats.Header
	ID       string    // Nats-Msg-Id: the event's id
	Sequence uint64    // in its stream
	Time     time.Time // when the stream took it
	Attempt  int       // 1 at first; counts tries in place and redeliveries

	// TraceParent is the span in which a consumer handles the delivery, as a W3C traceparent, or, where no traces are kept,
	// what came with it; empty: nothing.
	TraceParent string
}

// Consumer is a durable consumer of a stream and what handles its deliveries.
type Consumer struct {
	Stream  string
	Durable string   // replicas that use the same name stand by for each other: one of them gets the deliveries
	Filters []string // subjects; empty: all of the stream
	// Handle handles a delivery; its error decides what becomes of it (see fate.go). It must be able to handle the same
	// delivery again. Its ctx is cancelled only when the bus closes, and carries the delivery's origin: the request and the
	// trace that it comes from.
	Handle func(ctx context.Context, d Delivery) error
	// HandleBatch, in the place of Handle, handles deliveries of different keys together: all that wait when a worker is
	// free, up to MaxBatch. It returns an error for each, in their order, or nil when all are handled. Its ctx carries no
	// origin, but each delivery has its traceparent; where it panics it is called again, for each delivery alone.
	HandleBatch func(ctx context.Context, batch []Delivery) []error
	// MaxBatch is how many deliveries HandleBatch gets at most; 0: 128.
	MaxBatch int
	// Key names what must stay in order; nil: the subject. It must not panic.
	Key func(Delivery) string
	// Workers is how many handlers run at once; 0: 16.
	Workers int
	// MaxAckPending is how many deliveries may be on their way, waiting ones included; 0: 1000. When so many wait for
	// another try, the consumer stands still.
	MaxAckPending int
	// MaxPause is the longest pause between two tries; 0: 5 seconds.
	MaxPause time.Duration
	// DeliverPolicy is where a consumer starts that did not exist before; the zero value is the stream's beginning.
	DeliverPolicy jetstream.DeliverPolicy
	// AckWait is after how long without a sign of life a delivery counts as lost with its process; 0: 6 seconds. After a
	// crash the next process gets its first delivery after less than twice that. Handlers may take as long as they need.
	AckWait time.Duration
}

func (c Consumer) complete() (Consumer, error) {
	var faults []string
	need := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	need(subject.Valid(c.Stream), "Stream is missing or no token of a subject")
	need(subject.Valid(c.Durable), "Durable is missing or no token of a subject")
	need((c.Handle != nil) != (c.HandleBatch != nil), "one of Handle and HandleBatch is needed")
	need(c.MaxBatch >= 0, "MaxBatch is negative")
	need(c.MaxPause >= 0, "MaxPause is negative")
	need(c.Workers >= 0, "Workers is negative")
	need(c.MaxAckPending >= 0, "MaxAckPending is negative")
	need(c.AckWait >= 0, "AckWait is negative")
	c.Workers = cmp.Or(c.Workers, defaultWorkers)
	c.MaxAckPending = cmp.Or(c.MaxAckPending, defaultMaxAckPending)
	c.AckWait = cmp.Or(c.AckWait, defaultAckWait)
	c.MaxPause = cmp.Or(c.MaxPause, maxPause)
	c.MaxBatch = cmp.Or(c.MaxBatch, defaultMaxBatch)
	if c.HandleBatch == nil {
		c.MaxBatch = 1
	}
	if c.Key == nil {
		c.Key = func(d Delivery) string { return d.Subject }
	}
	if len(faults) > 0 {
		return c, errors.New(strings.Join(faults, "; "))
	}
	return c, nil
}

// pullExpires is how often a consumer shows itself to the server at least.
func (c Consumer) pullExpires() time.Duration { return c.AckWait / 2 }

func (c Consumer) config() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:        c.Durable,
		FilterSubjects: c.Filters,
		DeliverPolicy:  c.DeliverPolicy,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        c.AckWait,
		MaxDeliver:     -1, // giving up is decided here (see fate.go), and leaves a letter in DEAD
		MaxAckPending:  c.MaxAckPending,
		PriorityPolicy: jetstream.PriorityPolicyPinned,
		PriorityGroups: []string{priorityGroup},
		// Long enough that what a crashed process held has become free before another one gets its first delivery.
		PinnedTTL: c.AckWait + c.pullExpires() + c.AckWait/4,
	}
}

// census is the server's answer to how many deliveries it has out, with the state of things here when it was asked.
type census struct {
	out  int // -1: no answer
	mark uint64
	gaps int
}

// consumption is one call of Consume.
type consumption struct {
	bus    *Bus
	cfg    Consumer
	ledger *ledger
	lanes  *lanes
	gate   *gate
	pull   puller

	incoming chan *nats.Msg
	up       <-chan struct{} // closes when the connection comes back
	censuses chan census
	asking   sync.WaitGroup
	handlers context.Context
	failing  atomic.Bool // the last try failed for want of something that we need

	handledOK prometheus.Counter
}

// Consume handles deliveries until ctx is done, and then returns nil when all handlers that run have finished and their
// deliveries are acknowledged. It waits for NATS, creates the consumer, and survives restarts and a deleted consumer by
// itself; it fails only for a wrong Consumer.
func (b *Bus) Consume(ctx context.Context, c Consumer) error {
	c, err := c.complete()
	if err != nil {
		return fmt.Errorf("bus: consumer %s: %w", c.Durable, err)
	}
	handlers, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()

	r := b.newConsumption(c, handlers)
	r.lanes = startLanes(c.Workers, c.MaxBatch, r.run)
	stopTouching, stopAnswering, stopGauging := r.keepTouching(), r.answerQuestions(), r.keepGauging()
	r.sessions(ctx)
	r.settle()
	stopTouching()
	stopAnswering()
	stopGauging()
	r.farewell()
	return nil
}

func (b *Bus) newConsumption(c Consumer, handlers context.Context) *consumption {
	b.metrics.begin(c)
	batch := min(maxBatch, c.MaxAckPending)
	return &consumption{
		bus: b, cfg: c, handlers: handlers,
		ledger: newLedger(max(1024, 2*c.MaxAckPending), b.sendAck),
		gate:   newGate(3 * c.AckWait),
		pull: puller{
			conn:    b.conn,
			subject: "$JS.API.CONSUMER.MSG.NEXT." + c.Stream + "." + c.Durable,
			inbox:   b.conn.NewInbox(),
			batch:   batch,
			expires: c.pullExpires(),
		},
		incoming: make(chan *nats.Msg, 8*batch+64), // more than the server may have out at once
		censuses: make(chan census),
		up:       b.linkUp.wait(),

		handledOK: b.metrics.handled.WithLabelValues(c.Stream, c.Durable, resultOK),
	}
}

// sendAck tells the server about a delivery. It needs no answer: what does not arrive is noticed when the server delivers
// the same again.
func (b *Bus) sendAck(reply, ack string) { _ = b.conn.Publish(reply, []byte(ack)) }

// keepTouching tells the server again and again that what is here is in good hands, until stop is called.
func (r *consumption) keepTouching() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(r.cfg.AckWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				r.ledger.touch(now, r.cfg.AckWait/4)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// sessions listens until ctx is done; whenever something is wrong with a session, it begins another.
func (r *consumption) sessions(ctx context.Context) {
	sub, err := r.bus.conn.ChanSubscribe(r.pull.inbox, r.incoming)
	if err != nil { // the bus is closed
		<-ctx.Done()
		return
	}
	wait := minSessionWait
	for ctx.Err() == nil {
		began := time.Now()
		err := r.session(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > maxSessionWait {
			wait = minSessionWait
		}
		r.report(err, wait)
		r.pause(ctx, wait)
		wait = min(2*wait, maxSessionWait)
	}
	r.hangUp(sub)
}

// report says why sessions end, once they have ended a few times in a row; that NATS is away the connection has said.
func (r *consumption) report(err error, wait time.Duration) {
	if r.bus.conn.IsConnected() && wait == 8*minSessionWait {
		r.bus.log.Warn("consumer is interrupted, trying until it works",
			"stream", r.cfg.Stream, "consumer", r.cfg.Durable, "error", err)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		r.bus.streams.check()
	}
}

// pause waits, but not beyond the return of the connection.
func (r *consumption) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-r.up:
		r.up = r.bus.linkUp.wait()
	}
}

// session makes sure of the consumer and takes its deliveries, until ctx is done or the server behaves as if the consumer
// were gone.
func (r *consumption) session(ctx context.Context) error {
	consumer, err := r.declare(ctx)
	if err != nil {
		return err
	}
	if err := r.pull.again(); err != nil {
		return err
	}
	silence := time.NewTimer(r.pull.patience())
	defer silence.Stop()
	defer r.asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before the wait above
	if !r.gate.open() {
		r.askCensus(ctx, consumer, 0)
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-silence.C:
			return errSilent
		case <-r.up: // requests may have died with the old connection
			r.up = r.bus.linkUp.wait()
			err = r.pull.again()
		case m := <-r.incoming:
			silence.Reset(r.pull.patience())
			err = r.receiveAll(ctx, consumer, m)
		case c := <-r.censuses:
			r.tryGate(ctx, consumer, c)
		}
		if err != nil {
			return err
		}
	}
}

func (r *consumption) declare(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := r.bus.link.request(ctx, apiTimeout)
	defer cancel()
	consumer, err := r.bus.js.CreateOrUpdateConsumer(ctx, r.cfg.Stream, r.cfg.config())
	if err != nil {
		return nil, fmt.Errorf("declaring the consumer: %w", err)
	}
	return consumer, nil
}

// receiveAll takes m and what else has come already.
func (r *consumption) receiveAll(ctx context.Context, consumer jetstream.Consumer, m *nats.Msg) error {
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
func (r *consumption) receive(ctx context.Context, consumer jetstream.Consumer, m *nats.Msg) error {
	if m.Reply == "" {
		return r.pull.status(m)
	}
	if err := r.pull.count(m); err != nil {
		return err
	}
	now := time.Now()
	t, number, err := newTask(m, now)
	if err != nil {
		return fmt.Errorf("reading a delivery: %w", err)
	}
	closed := r.gate.arrive(number, now)
	if r.ledger.take(t) {
		t.key = r.cfg.Key(t.delivery)
		r.admit(t)
	}
	if closed {
		r.askCensus(ctx, consumer, 0)
	}
	return nil
}

func (r *consumption) admit(t *task) {
	if r.gate.open() {
		r.lanes.add(t)
		return
	}
	r.gate.keep(t)
}

// askCensus asks the server, after a while, how many deliveries it has out.
func (r *consumption) askCensus(ctx context.Context, consumer jetstream.Consumer, after time.Duration) {
	gaps := r.gate.gaps
	r.asking.Go(func() {
		if sleep(ctx, after) != nil {
			return
		}
		c := census{out: -1, mark: r.ledger.mark(), gaps: gaps}
		request, cancel := r.bus.link.request(ctx, farewellLimit)
		if info, err := consumer.Info(request); err == nil {
			c.out = info.NumAckPending
		}
		cancel()
		select {
		case r.censuses <- c:
		case <-ctx.Done():
		}
	})
}

// tryGate opens the gate if all that the server has out is here. It counts only what was here both before and after the
// question: what came or went in between may or may not be in the answer.
func (r *consumption) tryGate(ctx context.Context, consumer jetstream.Consumer, c census) {
	complete := c.out >= 0 && c.gaps == r.gate.gaps && c.out <= r.ledger.stillHeld(c.mark)
	for _, t := range r.gate.try(complete, time.Now()) {
		r.lanes.add(t)
	}
	if !r.gate.open() {
		r.askCensus(ctx, consumer, r.cfg.AckWait/50)
	}
}

// hangUp ends the subscription. What the server had sent before it heard of that goes back to it.
func (r *consumption) hangUp(sub *nats.Subscription) {
	ctx, cancel := context.WithTimeout(context.Background(), farewellLimit)
	defer cancel()
	if sub.Drain() == nil && r.bus.conn.IsConnected() {
		_ = r.bus.conn.FlushWithContext(ctx) // fails where NATS is away, and then nothing comes
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

func (r *consumption) refuse(m *nats.Msg) {
	if m.Reply == "" {
		return
	}
	if t, _, err := newTask(m, time.Now()); err == nil && r.ledger.take(t) {
		r.gate.keep(t) // settle gives it back, in its turn
	}
}

// settle waits for the handlers that run, and gives back what has not been handled.
func (r *consumption) settle() {
	left := append(r.lanes.stop(), r.gate.release()...)
	sortTasks(left)
	for _, t := range left {
		r.ledger.giveBack(t)
	}
}

// farewell makes sure that the server has heard of everything, and lets the next replica begin at once.
func (r *consumption) farewell() {
	ctx, cancel := r.bus.link.request(context.Background(), farewellLimit)
	defer cancel()
	if !r.bus.conn.IsConnected() || r.bus.conn.FlushWithContext(ctx) != nil || r.pull.pin == "" {
		return
	}
	consumer, err := r.bus.js.Consumer(ctx, r.cfg.Stream, r.cfg.Durable)
	if err != nil || !pinned(consumer.CachedInfo(), r.pull.pin) {
		return
	}
	if stream, err := r.bus.js.Stream(ctx, r.cfg.Stream); err == nil {
		_ = stream.UnpinConsumer(ctx, r.cfg.Durable, priorityGroup) // else the pin runs out by itself
	}
}

func pinned(info *jetstream.ConsumerInfo, pin string) bool {
	for _, g := range info.PriorityGroups {
		if g.Group == priorityGroup && g.PinnedClientID == pin {
			return true
		}
	}
	return false
}
