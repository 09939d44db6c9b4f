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

	"github.com/nats-io/nats.go"
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
	// positionEvery is how much of a busy partition may be delivered again after a crash.
	positionEvery = 500 * time.Millisecond
	// idlePositionEvery is how often the position of a partition is written that follows the others without deliveries of its own.
	idlePositionEvery = 5 * time.Second
	// positionReaderLife is how long the server keeps the consumer of a replica that is silent.
	positionReaderLife = 5 * time.Second
	// gatherPartitions is how long a change of the partitions waits for another: several are added and removed together.
	gatherPartitions = 10 * time.Millisecond

	// With the filters of several partitions the server scans all their subjects for each delivery, once the consumer lags by more messages
	// than a block of the stream has subjects. Without filters it reads sequentially. A replica that lags by more than catchUpFrom messages
	// therefore reads all partitions and skips those of others, until at most caughtUpAt are left.
	catchUpFrom = 1000
	caughtUpAt  = 100
)

var (
	errGap       = errors.New("a delivery is missing")
	errNewStream = errors.New("the stream has been created anew")
)

// positions is what a replica reads of a stream by positions.
type positions struct {
	group   *group
	count   int           // partitions of the stream
	changed chan struct{} // holds at most one: partitions were added or removed

	mu       sync.Mutex
	readers  map[int]*positionReader // by partition
	reading  map[int]*positionReader // those that the session began with
	reached  uint64                  // everything up to here that the session selects has arrived
	expected uint64                  // the next delivery's number in the session
	filtered bool                    // the session gets only the partitions that it reads
	created  time.Time               // the stream; zero: not known yet
	sessions int
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
	p := &positions{group: g, count: len(slots), changed: make(chan struct{}, 1), readers: make(map[int]*positionReader)}
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

// reader returns the reader of a partition that the session began with; nil: there is none, or it was removed. One that was added since, also
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

// session reads the current partitions until they change, ctx is done, or something is wrong.
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
	if p.filtered = len(p.readers) < p.count && last-start <= catchUpFrom; !p.filtered {
		filters = nil
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
	_, err := g.bus.js.CreateConsumer(creating, g.cfg.Stream, config)
	cancel()
	if err != nil {
		return fmt.Errorf("creating the consumer: %w", err)
	}
	r, err := newRounds(g.bus.conn, g.cfg.Stream, config.Name)
	if err != nil {
		return err
	}
	defer r.close()
	g.interrupted.Store(false)
	silence := time.NewTimer(r.patience())
	defer silence.Stop()
	for {
		if err := r.next(ctx); err != nil {
			return err
		}
		again, err := p.round(ctx, up, r, silence)
		if err != nil || !again {
			return err
		}
		r.end()
	}
}

// round takes the deliveries of a round when there is room for them. It reports false where the session has ended: ctx is done, partitions
// were added or removed, the connection was re-established, or another consumer suits better.
func (p *positions) round(ctx context.Context, up <-chan struct{}, r *rounds, silence *time.Timer) (again bool, err error) {
	g := p.group
	silence.Reset(r.patience())
	for ended := false; !ended; {
		incoming, freed := r.incoming, g.freed.wait()
		if g.hasRoom() {
			freed = nil
		} else {
			incoming = nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-p.changed:
			_ = sleep(ctx, gatherPartitions)
			return false, nil
		case <-up: // what was on its way has died with the old connection
			return false, nil
		case <-freed:
			silence.Reset(r.patience())
		case <-silence.C:
			if incoming != nil {
				return false, errSilent
			}
		case m := <-incoming:
			silence.Reset(r.patience())
			if m.Reply == "" {
				ended, err = r.status(m)
			} else {
				ended = r.take(m)
			}
			if err == nil {
				err = p.receive(r.taken(ended))
			}
			if err != nil {
				return false, err
			}
		}
	}
	return p.suits(r.pending()), nil
}

// suits reports whether the session's consumer is the right one for so many messages that it has left to deliver.
func (p *positions) suits(pending uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filtered {
		return pending <= catchUpFrom
	}
	return len(p.reading) == p.count || pending > caughtUpAt
}

// receive takes deliveries of the session.
func (p *positions) receive(messages []*nats.Msg) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, tasks := time.Now(), make([]*task, 0, len(messages))
	defer func() { p.group.queue.add(tasks...) }() // with the lock held: a partition is released after it was removed from the readers
	for _, m := range messages {
		t, number, err := newTask(m, now)
		if err != nil {
			return fmt.Errorf("reading a delivery: %w", err)
		}
		if number != p.expected {
			return errGap
		}
		p.expected++
		if p.take(t, p.partitionOf(m.Subject)) {
			tasks = append(tasks, t)
		}
	}
	return nil
}

// take notes a delivery of a partition, and reports whether it is to be handled here. It is called with the lock held.
func (p *positions) take(t *task, number int) (taken bool) {
	sequence := t.delivery.Sequence
	if r := p.reader(number); r != nil && sequence > r.received {
		t.partition, t.key = r.partition, p.group.cfg.Key(t.delivery)
		if taken = r.ledger.take(t); taken {
			p.group.took(t)
		}
		r.received = sequence
	}
	p.reached = sequence
	return taken
}

// partitionOf returns the partition of a stored subject; -1: it has none.
func (p *positions) partitionOf(stored string) int {
	if p.count == 1 {
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
