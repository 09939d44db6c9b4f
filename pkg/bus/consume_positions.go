package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
)

// A group with Positions reads like a Kafka consumer group. One JetStream consumer without acknowledgements (AckNone) delivers all partitions
// of a replica. How far each partition has been handled is written to the stream POSITIONS twice a second and when the replica releases the
// partition; the next reader starts there. Readers are not fenced: each handles a gapless, ordered run of a partition that starts at a
// position up to which everything has been handled. A receiver that drops what is not newer than the last event of a key therefore loses
// nothing, even while two replicas read the same partition for a moment.

const (
	// positionEvery is how much of a busy partition may come again after a crash.
	positionEvery = 500 * time.Millisecond
	// idlePositionEvery is how often the position of a partition is written that follows the others without deliveries of its own.
	idlePositionEvery = 5 * time.Second
	// positionReaderLife is how long the server keeps the consumer of a replica that is silent.
	positionReaderLife = 5 * time.Second
	// gatherPartitions is how long a change of the partitions waits for another: they come and go together.
	gatherPartitions = 10 * time.Millisecond
	pulledAtOnce     = 512

	// In a dense stream, one with at least denseRate deliveries in each denseWindow, the deliveries of gatherDeliveries are handled together:
	// waking up for each one costs more than the delivery.
	gatherDeliveries = 2 * time.Millisecond
	denseWindow      = 20 * time.Millisecond
	denseRate        = 30
)

var (
	errGap       = errors.New("a delivery is missing")
	errNewStream = errors.New("the stream has been created anew")
)

// positions is what a replica reads of a stream by positions.
type positions struct {
	group   *group
	single  bool          // the stream has one partition
	changed chan struct{} // holds at most one: partitions have come or gone

	mu       sync.Mutex
	readers  map[int]*positionReader // by partition
	reading  map[int]*positionReader // those that the session began with
	reached  uint64                  // everything up to here that the session selects has arrived
	expected uint64                  // the next delivery's number in the session
	created  time.Time               // the stream; zero: not known yet
	sessions int

	gathering gathering
}

// gathering notices whether deliveries come densely. It belongs to the goroutine to which they come.
type gathering struct {
	window time.Time // when the count began
	count  int
	dense  bool
	paused time.Time // when the last pause ended
}

// note counts a delivery, after a pause where others are likely to follow it at once.
func (g *gathering) note() {
	now := time.Now()
	if passed := now.Sub(g.window); passed >= denseWindow {
		g.dense = g.count >= denseRate && passed < 2*denseWindow
		g.window, g.count = now, 0
	}
	g.count++
	if g.dense && now.Sub(g.paused) >= gatherDeliveries {
		time.Sleep(gatherDeliveries)
		g.paused = time.Now()
	}
}

// positionReader is one partition that is read by position.
type positionReader struct {
	*partition
	all      *positions
	received uint64 // everything up to here has arrived; all.mu guards it

	writing   sync.Mutex // one write at a time; guards what follows
	written   uint64     // in POSITIONS
	writtenAt time.Time
}

// readPositions reads what readers ask for until stop is called.
func (g *group) readPositions(slots []slot) (stop func()) {
	p := &positions{group: g, single: len(slots) == 1, changed: make(chan struct{}, 1), readers: make(map[int]*positionReader)}
	g.positions = p
	ctx, cancel := context.WithCancel(g.handlers)
	var running sync.WaitGroup
	running.Go(func() { g.sessions(ctx, g.cfg.Durable, p.session) })
	running.Go(func() { p.keepWriting(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func newPositionReader(all *positions, s slot, cancel context.CancelFunc) *positionReader {
	r := &positionReader{all: all}
	ledger := newLedger(2*all.group.cfg.MaxAckPending, func(string, string) {}) // the server waits for nothing
	r.partition = newPartition(all.group, s, ledger, cancel)
	return r
}

// run reads a partition until ctx is done, and returns when the handlers that run have ended and its position is written.
func (r *positionReader) run(ctx context.Context) {
	taken := r.take(ctx)
	if taken {
		r.all.add(r)
		<-ctx.Done()
		r.all.remove(r)
	}
	r.stopping.Store(true)
	left := r.group.queue.release(r.partition)
	<-r.idle
	if taken {
		write, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		_ = r.keep(write, 0) // what the stream does not get, the next replica hands on again
	}
	for _, t := range append(left, r.unfinished...) {
		r.group.dropped(t)
	}
}

// take finds where to go on, when no replica has handlers running in the partition. It reports false where ctx has ended before.
func (r *positionReader) take(ctx context.Context) bool {
	g := r.group
	for wait := minSessionWait; ctx.Err() == nil; wait = min(2*wait, maxSessionWait) {
		for g.members.finishing(r.slot.name) && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-r.look:
			case <-time.After(memberHello):
			}
		}
		err := r.find(ctx)
		if err == nil {
			return true
		}
		if apperr.Is(err, apperr.NotFound) {
			g.bus.streams.check()
		}
		pauseUntil(ctx, wait, g.bus.linkUp.wait())
	}
	return false
}

// find reads the position, and writes one where there is none, so that the partition is known to be read.
func (r *positionReader) find(ctx context.Context) error {
	g := r.group
	created, last, err := r.all.look(ctx)
	if err != nil {
		return err
	}
	p, err := g.bus.position(ctx, g.cfg.Stream, g.cfg.Durable, r.slot.number)
	switch {
	case apperr.Is(err, apperr.NotFound), err == nil && !p.Stream.Equal(created):
		return r.write(ctx, 0)
	case err != nil:
		return err
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	r.written = p.Sequence
	r.received = min(p.Sequence, last)
	return nil
}

// look asks how far the stream is, and when it was created: after that, readers of another one have to begin anew.
func (p *positions) look(ctx context.Context) (created time.Time, last uint64, err error) {
	state, err := p.group.bus.State(ctx, p.group.cfg.Stream)
	if err != nil {
		return created, 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.created.IsZero() {
		p.created = state.Created
	}
	if !p.created.Equal(state.Created) {
		p.group.bus.partitions.forget(p.group.cfg.Stream)
		wake(p.group.repartition)
		return created, 0, errNewStream
	}
	return state.Created, state.Last, nil
}

func (p *positions) add(r *positionReader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers[r.slot.number] = r
	wake(p.changed)
}

func (p *positions) remove(r *positionReader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.received = p.arrived(r)
	delete(p.readers, r.slot.number)
	wake(p.changed)
}

// arrived returns up to where everything of a partition has arrived. It is called with the lock held.
func (p *positions) arrived(r *positionReader) uint64 {
	if p.reader(r.slot.number) == r {
		return max(r.received, p.reached)
	}
	return r.received
}

// reader returns the reader of a partition that the session began with; nil: there is none, or it has gone. One that has come since, also
// for the same partition, waits for a session that begins at its position. It is called with the lock held.
func (p *positions) reader(number int) *positionReader {
	if r := p.reading[number]; r != nil && p.readers[number] == r {
		return r
	}
	return nil
}

// position returns up to where everything of the partition has been handled.
func (r *positionReader) position() uint64 {
	r.all.mu.Lock()
	arrived := r.all.arrived(r) // before the look at what is held: what arrives after it is above
	r.all.mu.Unlock()
	if lowest, ok := r.ledger.lowest(); ok {
		return min(arrived, lowest-1)
	}
	return arrived
}

// session reads the partitions of the moment until others come or go, ctx is done, or something is wrong.
func (p *positions) session(ctx context.Context, up <-chan struct{}) error {
	select {
	case <-p.changed: // begin looks after this
	default:
	}
	config, some, err := p.begin(ctx)
	if err != nil {
		return err
	}
	if some {
		return p.consume(ctx, up, config)
	}
	select {
	case <-ctx.Done():
	case <-p.changed:
		_ = sleep(ctx, gatherPartitions)
	}
	return nil
}

// begin makes the partitions of the moment those of the session.
func (p *positions) begin(ctx context.Context) (config jetstream.ConsumerConfig, some bool, err error) {
	ctx, cancel := p.group.bus.state.request(ctx, apiTimeout)
	defer cancel()
	_, last, err := p.look(ctx)
	if err != nil {
		return config, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.readers {
		r.received = min(p.arrived(r), last) // a server that was killed may have lost its last messages
	}
	p.reading = maps.Clone(p.readers)
	var filters, numbers []string
	start := last
	for number, r := range p.readers {
		filters = append(filters, r.slot.filters...)
		numbers = append(numbers, strconv.Itoa(number))
		start = min(start, r.received)
	}
	p.reached, p.expected = start, 1
	p.sessions++
	return jetstream.ConsumerConfig{
		Name:              p.group.cfg.Durable + "_" + p.group.members.self + "_" + strconv.Itoa(p.sessions),
		Metadata:          map[string]string{metadataGroup: p.group.cfg.Durable, metadataPartition: strings.Join(numbers, ",")},
		FilterSubjects:    filters,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       start + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		MaxDeliver:        -1,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: positionReaderLife,
	}, len(p.reading) > 0, nil
}

// consume reads a session's consumer.
func (p *positions) consume(ctx context.Context, up <-chan struct{}, config jetstream.ConsumerConfig) error {
	g := p.group
	creating, cancel := g.bus.state.request(ctx, apiTimeout)
	consumer, err := g.bus.js.CreateConsumer(creating, g.cfg.Stream, config)
	cancel()
	if err != nil {
		return fmt.Errorf("creating the consumer: %w", err)
	}
	ctx, end := context.WithCancelCause(ctx)
	consuming, err := consumer.Consume(
		func(m jetstream.Msg) {
			if err := p.receive(ctx, m); err != nil {
				end(err)
			}
		},
		jetstream.PullMaxMessages(pulledAtOnce), jetstream.PullExpiry(pullExpires), jetstream.PullHeartbeat(pullExpires/3),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { end(err) }),
	)
	if err != nil {
		end(nil)
		return fmt.Errorf("reading the consumer: %w", err)
	}
	g.interrupted.Store(false)
	defer func() {
		end(nil) // a delivery that waits for room
		consuming.Stop()
		<-consuming.Closed()
	}()
	select {
	case <-ctx.Done():
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
	case <-p.changed:
		_ = sleep(ctx, gatherPartitions)
	case <-up: // what was on its way has died with the old connection
	}
	return nil
}

// receive takes one delivery of the session, when there is room for it.
func (p *positions) receive(ctx context.Context, m jetstream.Msg) error {
	g := p.group
	for freed := g.freed.wait(); !g.hasRoom(); freed = g.freed.wait() {
		select {
		case <-ctx.Done():
		case <-freed:
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	p.gathering.note()
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("reading a delivery: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	if meta.Sequence.Consumer != p.expected {
		return errGap
	}
	p.expected++
	sequence := meta.Sequence.Stream
	if r := p.reader(p.partitionOf(m.Subject())); r != nil && sequence > r.received {
		t := &task{delivery: readDelivery(m, meta), delivered: 1, touched: time.Now(), partition: r.partition}
		t.delivery.TraceParent = t.delivery.Header.Get(headerTraceParent)
		t.key = g.cfg.Key(t.delivery)
		if r.ledger.take(t) {
			g.took(t)
			g.queue.add(t)
		}
		r.received = sequence
	}
	p.reached = sequence
	return nil
}

// partitionOf returns the partition of a stored subject; -1: it has none.
func (p *positions) partitionOf(stored string) int {
	if p.single {
		return 0
	}
	number, _, _ := strings.Cut(stored, ".")
	n, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return n
}

// keepWriting writes the positions again and again until ctx is done.
func (p *positions) keepWriting(ctx context.Context) {
	tick := time.NewTicker(positionEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if p.group.bus.conn.IsConnected() {
				p.writeAll(ctx)
			}
		}
	}
}

func (p *positions) writeAll(ctx context.Context) {
	p.mu.Lock()
	var writing errgroup.Group
	for _, r := range p.readers {
		writing.Go(func() error { return r.keep(ctx, idlePositionEvery) })
	}
	p.mu.Unlock()
	_ = writing.Wait() // what fails is written next time
}

// keep writes the position if it is another one than the last that was written. That of a partition without deliveries of its own is written
// only when the last write is older than idle.
func (r *positionReader) keep(ctx context.Context, idle time.Duration) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	at := r.position()
	r.all.mu.Lock()
	busy := r.received > r.written
	r.all.mu.Unlock()
	if at == r.written || !busy && time.Since(r.writtenAt) < idle {
		return nil
	}
	return r.put(ctx, at)
}

// write writes a position.
func (r *positionReader) write(ctx context.Context, sequence uint64) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.put(ctx, sequence)
}

// put is called with the lock held.
func (r *positionReader) put(ctx context.Context, sequence uint64) error {
	r.all.mu.Lock()
	created := r.all.created
	r.all.mu.Unlock()
	g := r.group
	err := g.bus.writePosition(ctx, g.cfg.Stream, g.cfg.Durable, r.slot.number, Position{Sequence: sequence, Stream: created})
	if err == nil {
		r.written, r.writtenAt = sequence, time.Now()
	}
	return err
}
