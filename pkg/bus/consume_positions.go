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

// A group with Positions works like a Kafka consumer group. Each replica reads all its partitions through one
// ephemeral JetStream consumer without acknowledgements (AckNone). The position of a partition is the offset
// up to which everything has been handled. It is saved to the stream POSITIONS twice a second and when the
// replica releases the partition, and the next reader starts there. Readers are not fenced: each handles a
// gapless, ordered run of a partition that starts at a saved position. Two replicas may read the same
// partition for a moment; a receiver that drops events not newer than the last one of their key still loses
// nothing.

const (
	// positionInterval bounds how much of a busy partition is redelivered after a crash.
	positionInterval = 500 * time.Millisecond
	// idlePositionInterval is the save interval of partitions without deliveries, whose position advances
	// with the other partitions.
	idlePositionInterval = 5 * time.Second
	// positionReaderTTL is how long the server keeps the consumer of a replica that has stopped pulling.
	positionReaderTTL = 5 * time.Second
	// partitionDebounce is the delay before a session restarts after a change: partitions are usually added
	// and removed in groups.
	partitionDebounce = 10 * time.Millisecond

	// With filters on several partitions the server scans all their subjects for each delivery once the lag
	// of the consumer exceeds the number of subjects in a block of the stream. Without filters it reads
	// sequentially. A replica whose lag exceeds catchUpFrom messages therefore reads all partitions and skips
	// those of other replicas until its lag is at most caughtUpAt.
	catchUpFrom = 1000
	caughtUpAt  = 100
)

var (
	errGap             = errors.New("gap in the consumer sequence")
	errStreamRecreated = errors.New("stream recreated")
)

// positions reads this replica's partitions of a stream in sessions; each session has one consumer.
type positions struct {
	group   *group
	count   int           // number of partitions of the stream
	changed chan struct{} // capacity 1: partitions were added or removed

	mu       sync.Mutex
	readers  map[int]*positionReader // current readers by partition
	reading  map[int]*positionReader // readers at the start of the session
	reached  uint64                  // high-water mark of the session: last sequence received in any partition
	expected uint64                  // consumer sequence of the next delivery
	filtered bool                    // the consumer filters on the partitions of the session
	created  time.Time               // creation time of the stream; zero: unknown
	sessions int
}

// positionReader reads one partition of a group with positions.
type positionReader struct {
	*partition
	all      *positions
	received uint64 // everything up to this sequence has arrived; guarded by all.mu

	writing   sync.Mutex // serialises writes; guards written and writtenAt
	written   uint64     // last position saved to POSITIONS
	writtenAt time.Time
}

// readPositions starts the sessions and the periodic saves for the readers of a group, until stop is called.
func (g *group) readPositions(slots []slot) (stop func()) {
	p := &positions{group: g, count: len(slots), changed: make(chan struct{}, 1), readers: make(map[int]*positionReader)}
	g.positions = p
	ctx, cancel := context.WithCancel(g.handlers)
	var running sync.WaitGroup
	running.Go(func() { g.sessions(ctx, g.cfg.Durable, p.session) })
	running.Go(func() { p.savePeriodically(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func newPositionReader(all *positions, s slot, cancel context.CancelFunc) *positionReader {
	r := &positionReader{all: all}
	ledger := newLedger(2*all.group.cfg.MaxAckPending, func(string, string) {}) // no acknowledgements
	r.partition = newPartition(all.group.handlers, all.group, s, ledger, cancel)
	return r
}

// run reads a partition until ctx is done. It returns after the running handlers have ended and the position is saved.
func (r *positionReader) run(ctx context.Context) {
	acquired := r.acquire(ctx)
	if acquired {
		r.all.add(r)
		<-ctx.Done()
		r.all.remove(r)
	}
	r.stopping.Store(true)
	left := r.group.queue.release(r.partition)
	r.awaitHandlers()
	if acquired {
		write, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		_ = r.savePosition(write, 0) // if it fails, the next reader handles the events again
	}
	for _, t := range append(left, r.unfinished...) {
		r.group.removeHeld(t)
	}
}

// acquire waits until no other replica runs handlers in the partition, then loads the position to start from.
// It reports false if ctx ended first.
func (r *positionReader) acquire(ctx context.Context) bool {
	g := r.group
	for wait := minSessionWait; ctx.Err() == nil; wait = min(2*wait, maxSessionWait) {
		for g.members.finishing(r.slot.name) && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-r.membersChanged:
			case <-time.After(memberDiscovery):
			}
		}
		err := r.loadPosition(ctx)
		if err == nil {
			return true
		}
		if apperr.Is(err, apperr.NotFound) {
			g.bus.streams.check()
		}
		pauseUntil(ctx, wait, g.bus.connUp.wait())
	}
	return false
}

// loadPosition loads the saved position. If there is none for this stream, it saves position 0, so that the
// partition is known to be read.
func (r *positionReader) loadPosition(ctx context.Context) error {
	g := r.group
	created, last, err := r.all.fetchState(ctx)
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

// fetchState returns the creation time and the last sequence of the stream. If the stream was recreated since
// the readers started, it returns errStreamRecreated and makes the group start over.
func (p *positions) fetchState(ctx context.Context) (created time.Time, last uint64, err error) {
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
		return created, 0, errStreamRecreated
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

// arrived returns the sequence up to which everything of a partition has arrived. Callers must hold mu.
func (p *positions) arrived(r *positionReader) uint64 {
	if p.reader(r.slot.number) == r {
		return max(r.received, p.reached)
	}
	return r.received
}

// reader returns the reader of a partition if the session started with it and it was not removed since;
// otherwise nil. A reader added later, even for the same partition, waits for a session that starts at its
// position. Callers must hold mu.
func (p *positions) reader(number int) *positionReader {
	if r := p.reading[number]; r != nil && p.readers[number] == r {
		return r
	}
	return nil
}

// position returns the sequence up to which everything of the partition has been handled.
func (r *positionReader) position() uint64 {
	r.all.mu.Lock()
	arrived := r.all.arrived(r) // read before lowest: later deliveries have higher sequences
	r.all.mu.Unlock()
	if lowest, ok := r.ledger.lowest(); ok {
		return min(arrived, lowest-1)
	}
	return arrived
}

// session reads the current partitions until they change, ctx is done, the connection was re-established, or
// an error occurs.
func (p *positions) session(ctx context.Context, up <-chan struct{}) error {
	select {
	case <-p.changed: // beginSession reads the partitions after this
	default:
	}
	config, hasReaders, err := p.beginSession(ctx)
	if err != nil {
		return err
	}
	if hasReaders {
		return p.consume(ctx, up, config)
	}
	select {
	case <-ctx.Done():
	case <-p.changed:
		_ = sleep(ctx, partitionDebounce)
	}
	return nil
}

// beginSession snapshots the current readers and returns the configuration of their consumer. hasReaders is
// false if there are none.
func (p *positions) beginSession(ctx context.Context) (config jetstream.ConsumerConfig, hasReaders bool, err error) {
	ctx, cancel := p.group.bus.state.request(ctx, apiTimeout)
	defer cancel()
	_, last, err := p.fetchState(ctx)
	if err != nil {
		return config, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.readers {
		r.received = min(p.arrived(r), last) // a killed server may have lost its last messages
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
		Name: p.group.cfg.Durable + "_" + p.group.members.self + "_" + strconv.Itoa(p.sessions),
		Metadata: map[string]string{
			metadataGroup:     p.group.cfg.Durable,
			metadataPartition: strings.Join(numbers, ","),
		},
		FilterSubjects:    filters,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       start + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		MaxDeliver:        -1,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: positionReaderTTL,
	}, len(p.reading) > 0, nil
}

// consume creates the consumer of a session and pulls from it.
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
	silence := time.NewTimer(r.silenceTimeout())
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

// round receives the deliveries of one round, pausing while there is no room. It reports false if the session
// has ended: ctx is done, partitions were added or removed, the connection was re-established, or the
// consumer no longer fits the lag.
func (p *positions) round(
	ctx context.Context,
	up <-chan struct{},
	r *rounds,
	silence *time.Timer,
) (again bool, err error) {
	g := p.group
	silence.Reset(r.silenceTimeout())
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
			_ = sleep(ctx, partitionDebounce)
			return false, nil
		case <-up: // messages in flight were lost with the old connection
			return false, nil
		case <-freed:
			silence.Reset(r.silenceTimeout())
		case <-silence.C:
			if incoming != nil {
				return false, errSilent
			}
		case m := <-incoming:
			silence.Reset(r.silenceTimeout())
			if m.Reply == "" {
				ended, err = r.status(m)
			} else {
				ended = r.add(m)
			}
			if err == nil {
				err = p.receive(r.ready(ended))
			}
			if err != nil {
				return false, err
			}
		}
	}
	return p.consumerFits(r.pending()), nil
}

// consumerFits reports whether the consumer is the right one, filtered or not, for the number of pending messages.
func (p *positions) consumerFits(pending uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filtered {
		return pending <= catchUpFrom
	}
	return len(p.reading) == p.count || pending > caughtUpAt
}

// receive checks and accepts deliveries of the session, and queues those to be handled here.
func (p *positions) receive(messages []*nats.Msg) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, tasks := time.Now(), make([]*task, 0, len(messages))
	// with mu held: a partition is released only after its reader was removed
	defer func() { p.group.queue.add(tasks...) }()
	for _, m := range messages {
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("decoding a delivery: %w", err)
		}
		if meta.Sequence.Consumer != p.expected {
			return errGap
		}
		t := newTask(m, &jetstream.MsgMetadata{
			Stream:       meta.Stream,
			Sequence:     jetstream.SequencePair(meta.Sequence),
			Timestamp:    meta.Timestamp,
			NumDelivered: meta.NumDelivered,
		}, now)
		p.expected++
		if p.accept(t, p.partitionOf(m.Subject)) {
			tasks = append(tasks, t)
		}
	}
	return nil
}

// accept adds a delivery to the ledger of its partition and reports whether it is handled here. Callers must hold mu.
func (p *positions) accept(t *task, number int) (accepted bool) {
	sequence := t.delivery.Sequence
	if r := p.reader(number); r != nil && sequence > r.received {
		t.partition = r.partition
		t.key = p.group.cfg.Key(t.delivery)
		t.tenant = p.group.cfg.tenantOf(t.delivery)
		if accepted = r.ledger.accept(t); accepted {
			p.group.addHeld(t)
		}
		r.received = sequence
	}
	p.reached = sequence
	return accepted
}

// partitionOf returns the partition of a stored subject; -1: malformed.
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

// savePeriodically saves all positions every positionInterval until ctx is done.
func (p *positions) savePeriodically(ctx context.Context) {
	tick := time.NewTicker(positionInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if p.group.bus.conn.IsConnected() {
				p.saveAll(ctx)
			}
		}
	}
}

func (p *positions) saveAll(ctx context.Context) {
	p.mu.Lock()
	var writing errgroup.Group
	for _, r := range p.readers {
		writing.Go(func() error { return r.savePosition(ctx, idlePositionInterval) })
	}
	p.mu.Unlock()
	_ = writing.Wait() // retried at the next tick
}

// savePosition saves the position if it has changed. If the partition had no deliveries since the last save,
// it saves only when that save is older than idle.
func (r *positionReader) savePosition(ctx context.Context, idle time.Duration) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	at := r.position()
	r.all.mu.Lock()
	busy := r.received > r.written
	r.all.mu.Unlock()
	if at == r.written || !busy && time.Since(r.writtenAt) < idle {
		return nil
	}
	return r.writeLocked(ctx, at)
}

// write saves a position.
func (r *positionReader) write(ctx context.Context, sequence uint64) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.writeLocked(ctx, sequence)
}

// writeLocked saves a position. Callers must hold writing.
func (r *positionReader) writeLocked(ctx context.Context, sequence uint64) error {
	r.all.mu.Lock()
	created := r.all.created
	r.all.mu.Unlock()
	g := r.group
	err := g.bus.writePosition(
		ctx, g.cfg.Stream, g.cfg.Durable, r.slot.number, Position{Sequence: sequence, Stream: created},
	)
	if err == nil {
		r.written, r.writtenAt = sequence, time.Now()
	}
	return err
}
