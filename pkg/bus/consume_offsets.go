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
)

// A group with Offsets works like a Kafka consumer group. Each replica reads all its partitions through one
// ephemeral JetStream consumer without acknowledgements (AckNone). The offset of a partition is the sequence
// up to which everything has been handled. It is saved to the stream POSITIONS twice a second and when the
// replica releases the partition, and the next reader starts there. Readers are not fenced: each handles a
// gapless, ordered run of a partition that starts at a saved offset. Two replicas may read the same partition
// for a moment; a receiver that drops events not newer than the last one of their key still loses nothing.

const (
	// offsetInterval bounds how much of a busy partition is redelivered after a crash.
	offsetInterval = 500 * time.Millisecond
	// idleOffsetInterval is the save interval of partitions without deliveries, whose offset advances
	// with the other partitions.
	idleOffsetInterval = 5 * time.Second
	// offsetReaderTTL is how long the server keeps the consumer of a replica that has stopped pulling.
	offsetReaderTTL = 5 * time.Second
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
	errGap        = errors.New("gap in the consumer sequence")
	errOtherEpoch = errors.New("the epoch of the stream has changed")
)

// offsetConsumer reads this replica's partitions of a stream in sessions; each session has one consumer. It
// owns the consumer and decides which deliveries are handled here; consume_offset_reader.go owns the offset
// of each partition. It lives from readWithOffsets until the group stops or its stream is repartitioned.
//
// Its sequences, all but the last in the stream:
//
//	offsetReader.written      up to which the partition is handled, as last saved to POSITIONS
//	offsetReader.received     up to which everything of the partition has arrived; a delivery at or below it
//	                          is skipped
//	highWater                 last delivery of the session in any partition: everything of the session's
//	                          partitions has arrived up to it, so idle ones advance with the others
//	expectedConsumerSequence  number of the next delivery of the session's consumer, counted from 1; another
//	                          number means that one was lost
//
// [offsetConsumer.arrived] combines received and highWater; [offsetReader.offset] is what is saved next.
type offsetConsumer struct {
	group   *group
	count   int           // number of partitions of the stream
	changed chan struct{} // capacity 1: partitions were added or removed

	mu             sync.Mutex            // guards the fields below, and received of the readers
	readers        map[int]*offsetReader // current readers by partition
	sessionReaders map[int]*offsetReader // readers at the start of the session
	sessionCount   int                   // number of sessions so far; names their consumers
	filtered       bool                  // the consumer filters on the partitions of the session
	epoch          time.Time             // of the stream; zero: unknown

	highWater                uint64
	expectedConsumerSequence uint64
}

// readWithOffsets starts the sessions and the periodic saves for the readers of a group, until stop is
// called.
func (g *group) readWithOffsets(durables []durable) (stop func()) {
	c := &offsetConsumer{
		group:   g,
		count:   len(durables),
		changed: make(chan struct{}, 1),
		readers: make(map[int]*offsetReader),
	}
	g.offsets = c
	ctx, cancel := context.WithCancel(g.handlerCtx)
	var loops sync.WaitGroup
	loops.Go(func() { g.sessions(ctx, g.cfg.Durable, c.session) })
	loops.Go(func() { c.savePeriodically(ctx) })
	return func() {
		cancel()
		loops.Wait()
	}
}

// fetchState returns the state of the stream. If its epoch is not the one in which the readers started, it returns
// errOtherEpoch and makes the group start over.
func (c *offsetConsumer) fetchState(ctx context.Context) (StreamState, error) {
	state, err := c.group.bus.State(ctx, c.group.cfg.Stream)
	if err != nil {
		return StreamState{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch.IsZero() {
		c.epoch = state.Epoch
	}
	if !c.epoch.Equal(state.Epoch) {
		c.group.bus.partitions.forget(c.group.cfg.Stream)
		wake(c.group.repartition)
		return StreamState{}, errOtherEpoch
	}
	return state, nil
}

// add adds the reader of a partition to the next session.
func (c *offsetConsumer) add(r *offsetReader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers[r.durable.number] = r
	wake(c.changed)
}

// remove removes a reader: the running session delivers nothing more to it.
func (c *offsetConsumer) remove(r *offsetReader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.received = c.arrived(r)
	delete(c.readers, r.durable.number)
	wake(c.changed)
}

// arrived returns the sequence up to which everything of a partition has arrived. Callers must hold mu.
// The consumer of the session delivers in stream order: nothing of the partition is missing up to highWater.
func (c *offsetConsumer) arrived(r *offsetReader) uint64 {
	if c.reader(r.durable.number) == r {
		return max(r.received, c.highWater)
	}
	return r.received
}

// reader returns the reader of a partition if the session started with it and it was not removed since;
// otherwise nil. A reader added later, even for the same partition, waits for a session that starts at its
// offset. Callers must hold mu.
func (c *offsetConsumer) reader(number int) *offsetReader {
	if r := c.sessionReaders[number]; r != nil && c.readers[number] == r {
		return r
	}
	return nil
}

// session reads the current partitions until they change, ctx is done, the connection was re-established, or
// an error occurs.
func (c *offsetConsumer) session(ctx context.Context, up <-chan struct{}) error {
	select {
	case <-c.changed: // beginSession reads the partitions after this
	default:
	}
	config, hasReaders, err := c.beginSession(ctx)
	if err != nil {
		return err
	}
	if hasReaders {
		return c.consume(ctx, up, config)
	}
	select {
	case <-ctx.Done():
	case <-c.changed:
		_ = sleep(ctx, partitionDebounce)
	}
	return nil
}

// beginSession snapshots the current readers and returns the configuration of their consumer. hasReaders is
// false if there are none.
func (c *offsetConsumer) beginSession(
	ctx context.Context,
) (config jetstream.ConsumerConfig, hasReaders bool, err error) {
	ctx, cancel := c.group.bus.state.request(ctx, apiTimeout)
	defer cancel()
	state, err := c.fetchState(ctx)
	if err != nil {
		return config, false, err
	}
	last := state.Last
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.readers {
		r.received = min(c.arrived(r), last) // a killed server may have lost its last messages
	}
	c.sessionReaders = maps.Clone(c.readers)
	var filters, numbers []string
	start := last
	for number, r := range c.readers {
		filters = append(filters, r.durable.filters...)
		numbers = append(numbers, strconv.Itoa(number))
		start = min(start, r.received)
	}
	c.filtered = len(c.readers) < c.count && last-start <= catchUpFrom
	if !c.filtered {
		filters = nil
	}
	c.highWater = start
	c.expectedConsumerSequence = 1
	c.sessionCount++
	return jetstream.ConsumerConfig{
		Name: c.group.cfg.Durable + "_" + c.group.members.self + "_" + strconv.Itoa(c.sessionCount),
		Metadata: map[string]string{
			metadataGroup:     c.group.cfg.Durable,
			metadataPartition: strings.Join(numbers, ","),
		},
		FilterSubjects:    filters,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       start + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		MaxDeliver:        -1,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: offsetReaderTTL,
	}, len(c.sessionReaders) > 0, nil
}

// consume creates the consumer of a session and pulls from it.
func (c *offsetConsumer) consume(ctx context.Context, up <-chan struct{}, config jetstream.ConsumerConfig) error {
	g := c.group
	creating, cancel := g.bus.state.request(ctx, apiTimeout)
	_, err := g.bus.js.CreateConsumer(creating, g.cfg.Stream, config)
	cancel()
	if err != nil {
		return fmt.Errorf("creating the consumer: %w", err)
	}
	puller, err := newBatchPuller(g.bus.conn, g.cfg.Stream, config.Name)
	if err != nil {
		return err
	}
	defer puller.close()
	g.interrupted.Store(false)
	silence := time.NewTimer(puller.silenceTimeout())
	defer silence.Stop()
	for {
		if err := puller.next(ctx); err != nil {
			return err
		}
		again, err := c.pullBatch(ctx, up, puller, silence)
		if err != nil || !again {
			return err
		}
		puller.end()
	}
}

// pullBatch receives the deliveries of one batch, pausing while there is no room. It reports false if the
// session has ended: ctx is done, partitions were added or removed, the connection was re-established, or the
// consumer no longer fits the lag.
func (c *offsetConsumer) pullBatch(
	ctx context.Context,
	up <-chan struct{},
	puller *batchPuller,
	silence *time.Timer,
) (again bool, err error) {
	g := c.group
	silence.Reset(puller.silenceTimeout())
	for ended := false; !ended; {
		incoming, freed := puller.incoming, g.freed.wait()
		if g.hasRoom() {
			freed = nil
		} else {
			incoming = nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-c.changed:
			_ = sleep(ctx, partitionDebounce)
			return false, nil
		case <-up: // messages in flight were lost with the old connection
			return false, nil
		case <-freed:
			silence.Reset(puller.silenceTimeout())
		case <-silence.C:
			if incoming != nil {
				return false, errSilent
			}
		case m := <-incoming:
			silence.Reset(puller.silenceTimeout())
			if m.Reply == "" {
				ended, err = puller.status(m)
			} else {
				ended = puller.add(m)
			}
			if err == nil {
				err = c.receive(puller.ready(ended))
			}
			if err != nil {
				return false, err
			}
		}
	}
	return c.consumerFits(puller.pending()), nil
}

// consumerFits reports whether the consumer is the right one, filtered or not, for the number of pending
// messages.
func (c *offsetConsumer) consumerFits(pending uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.filtered {
		return pending <= catchUpFrom
	}
	return len(c.sessionReaders) == c.count || pending > caughtUpAt
}

// receive checks and accepts deliveries of the session, and queues those to be handled here.
func (c *offsetConsumer) receive(messages []*nats.Msg) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	tasks := make([]*task, 0, len(messages))
	// with mu held: a partition is released only after its reader was removed
	defer func() { c.group.queue.add(tasks...) }()
	for _, m := range messages {
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("decoding a delivery: %w", err)
		}
		if meta.Sequence.Consumer != c.expectedConsumerSequence {
			return errGap
		}
		t := newTask(m, &jetstream.MsgMetadata{
			Stream:       meta.Stream,
			Sequence:     jetstream.SequencePair(meta.Sequence),
			Timestamp:    meta.Timestamp,
			NumDelivered: meta.NumDelivered,
		}, now)
		c.expectedConsumerSequence++
		if c.accept(t, c.partitionOf(m.Subject)) {
			tasks = append(tasks, t)
		}
	}
	return nil
}

// accept adds a delivery to the ledger of its partition and reports whether it is handled here. Callers must
// hold mu.
func (c *offsetConsumer) accept(t *task, number int) (accepted bool) {
	sequence := t.delivery.Sequence
	if r := c.reader(number); r != nil && sequence > r.received {
		t.partition = r.partition
		t.key = c.group.cfg.Key(t.delivery)
		t.of = c.group.cfg.shareOf(t.delivery)
		accepted = r.ledger.accept(t)
		if accepted {
			c.group.addHeld(t)
		}
		r.received = sequence
	}
	c.highWater = sequence
	return accepted
}

// partitionOf returns the partition of a stored subject; -1: malformed.
func (c *offsetConsumer) partitionOf(stored string) int {
	if c.count == 1 {
		return 0
	}
	number, _, _ := strings.Cut(stored, ".")
	n, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return n
}

// savePeriodically saves all offsets every offsetInterval until ctx is done.
func (c *offsetConsumer) savePeriodically(ctx context.Context) {
	tick := time.NewTicker(offsetInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if c.group.bus.conn.IsConnected() {
				c.saveAll(ctx)
			}
		}
	}
}

// saveAll saves the offsets of all partitions concurrently.
func (c *offsetConsumer) saveAll(ctx context.Context) {
	c.mu.Lock()
	var writing errgroup.Group
	for _, r := range c.readers {
		writing.Go(func() error { return r.saveOffset(ctx, idleOffsetInterval) })
	}
	c.mu.Unlock()
	_ = writing.Wait() // retried at the next tick
}
