package bus

// Reading a range of a stream through an ordered consumer. The other read_ files say where they do without
// one.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// readTimeout is how long a reader waits for an expected message before it queries the pending count
	// again: messages may have been removed.
	readTimeout = 2 * time.Second
	// readerTTL is how long the server keeps the consumer of an inactive reader.
	readerTTL = 30 * time.Second
)

// Range selects messages of a stream. After takes precedence over New, and New over Since.
type Range struct {
	Stream      string
	Filters     []string  // published subjects; empty: all
	Since       time.Time // only messages stored at or after this time; zero: all
	New         bool      // only messages stored from now on
	After       uint64    // only messages after this sequence; 0: all
	HeadersOnly bool      // without the payloads
	Follow      bool      // continue with new messages after the stored ones
}

// check refuses what nats-server would end the connection for.
func (r Range) check() error {
	if !subject.Valid(r.Stream) {
		return fmt.Errorf("invalid name of a stream: %.64q", r.Stream)
	}
	for _, f := range r.Filters {
		if !subject.ValidFilter(f) {
			return fmt.Errorf("invalid filter of stream %s: %.64q", r.Stream, f)
		}
	}
	return nil
}

// config returns the consumer of the range in a stream with that many partitions.
func (r Range) config(partitions int) jetstream.OrderedConsumerConfig {
	filters := make([]string, len(r.Filters))
	for i, f := range r.Filters {
		filters[i] = subject.Stored(f, partitions)
	}
	c := jetstream.OrderedConsumerConfig{
		FilterSubjects:    filters,
		HeadersOnly:       r.HeadersOnly,
		InactiveThreshold: readerTTL,
		DeliverPolicy:     jetstream.DeliverAllPolicy,
		MaxResetAttempts:  1, // reopen makes the others: nats.go would not end them with a context
	}
	switch {
	case r.After > 0:
		c.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
		c.OptStartSeq = r.After + 1
	case r.New:
		c.DeliverPolicy = jetstream.DeliverNewPolicy
	case !r.Since.IsZero():
		c.DeliverPolicy = jetstream.DeliverByStartTimePolicy
		c.OptStartTime = &r.Since
	}
	return c
}

// Read yields the messages of a range in stream order, without affecting other consumers. The sequence ends
// after the range, after an error, or when ctx ends; the latter is an error unless the range follows. A range that
// follows waits while NATS is away, and goes on after the last message.
func (b *Bus) Read(ctx context.Context, selection Range) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		for r, err := range b.read(ctx, selection) {
			if r.opened {
				continue
			}
			if !yield(r.Delivery, err) {
				return
			}
		}
	}
}

// reading is a delivery and the number of messages of the range pending after it. The first reading of a range
// (opened) has no delivery, only the number.
type reading struct {
	Delivery
	pending uint64
	opened  bool
}

// read is [Bus.Read] with the number of pending messages.
func (b *Bus) read(ctx context.Context, selection Range) iter.Seq2[reading, error] {
	return func(yield func(reading, error) bool) {
		r, err := b.openReader(ctx, selection)
		if err != nil {
			yield(reading{}, err)
			return
		}
		defer func() { r.close() }()
		if !yield(reading{pending: r.pending, opened: true}, nil) {
			return
		}
		for {
			d, err := r.next(ctx)
			if selection.Follow && apperr.Is(err, apperr.Unavailable) {
				if err = r.reopen(ctx); err == nil {
					continue
				}
			}
			if errors.Is(err, errRangeEnd) || !yield(d, err) || err != nil {
				return
			}
		}
	}
}

var errRangeEnd = errors.New("end of the range")

// reader reads a range with an ephemeral consumer. It is not safe for concurrent use.
type reader struct {
	bus       *Bus
	selection Range
	consumer  jetstream.Consumer
	messages  jetstream.MessagesContext
	pending   uint64 // messages of the range not read yet
	last      uint64 // sequence up to which the range has been read
}

// openReader creates the consumer of a range. The caller must close the reader.
func (b *Bus) openReader(ctx context.Context, selection Range) (*reader, error) {
	if !b.conn.IsConnected() {
		return nil, apperr.Unreachable("NATS", nats.ErrDisconnected)
	}
	if err := selection.check(); err != nil {
		return nil, err
	}
	opening, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	partitions, err := b.partitions.get(opening, selection.Stream)
	if err != nil {
		return nil, readError(selection.Stream, err)
	}
	consumer, err := b.js.OrderedConsumer(opening, selection.Stream, selection.config(partitions))
	if err != nil {
		return nil, readError(selection.Stream, err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, readError(selection.Stream, err)
	}
	info := consumer.CachedInfo()
	return &reader{
		bus:       b,
		selection: selection,
		consumer:  consumer,
		messages:  messages,
		pending:   info.NumPending,
		last:      info.Delivered.Stream,
	}, nil
}

// reopen continues after the last message when NATS answers again. It returns errRangeEnd if ctx ends before.
func (r *reader) reopen(ctx context.Context) error {
	rest := r.selection
	rest.Since = time.Time{}
	rest.New = false
	rest.After = r.last
	for wait := minSessionWait; ; wait = min(2*wait, maxSessionWait) {
		up := r.bus.connUp.wait()
		opened, err := r.bus.openReader(ctx, rest)
		switch {
		case err == nil:
			r.close()
			*r = *opened
			return nil
		case ctx.Err() != nil:
			return errRangeEnd
		case !apperr.Is(err, apperr.Unavailable):
			return err
		}
		pauseUntil(ctx, wait, up)
	}
}

func readError(stream string, err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return apperr.StreamNotFound.WithMessage("Stream not found: " + stream).Wrap(err)
	}
	return apperr.Unreachable("NATS", fmt.Errorf("reading stream %s: %w", stream, err))
}

// next returns the next message of the range, or errRangeEnd.
func (r *reader) next(ctx context.Context) (reading, error) {
	for r.selection.Follow || r.pending > 0 {
		m, err := r.await(ctx)
		switch {
		case err == nil:
			return r.read(m)
		case ctx.Err() != nil && r.selection.Follow:
			return reading{}, errRangeEnd
		case ctx.Err() != nil:
			return reading{}, ctx.Err()
		case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout):
			return reading{}, readError(r.selection.Stream, err)
		}
		if err := r.updatePending(ctx); err != nil {
			return reading{}, err
		}
	}
	return reading{}, errRangeEnd
}

// await waits for a message; unless the range follows, for at most readTimeout.
func (r *reader) await(ctx context.Context) (jetstream.Msg, error) {
	if !r.selection.Follow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, readTimeout)
		defer cancel()
	}
	return r.messages.Next(jetstream.NextContext(ctx))
}

// updatePending queries the pending count: expected messages may have been removed.
func (r *reader) updatePending(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return readError(r.selection.Stream, err)
	}
	r.pending = info.NumPending
	return nil
}

func (r *reader) read(m jetstream.Msg) (reading, error) {
	meta, err := m.Metadata()
	if err != nil {
		return reading{}, fmt.Errorf("reading stream %s: %w", r.selection.Stream, err)
	}
	r.pending = meta.NumPending
	r.last = meta.Sequence.Stream
	stored := &nats.Msg{Subject: m.Subject(), Header: m.Headers(), Data: m.Data()}
	d := newDelivery(meta.Stream, stored, meta.Sequence.Stream, meta.Timestamp)
	return reading{pending: meta.NumPending, Delivery: d}, nil
}

// close stops reading and deletes the consumer.
func (r *reader) close() {
	r.messages.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if info := r.consumer.CachedInfo(); info != nil && r.bus.conn.IsConnected() {
		_ = r.bus.js.DeleteConsumer(ctx, r.selection.Stream, info.Name) // otherwise it expires
	}
}

// Get returns the message of a stream with the given sequence, or NotFound.
func (b *Bus) Get(ctx context.Context, stream string, sequence uint64) (Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return Delivery{}, readError(stream, err)
	}
	m, err := s.GetMsg(ctx, max(sequence, 1)) // sequences start at 1
	switch {
	case err == nil && m.Sequence == sequence:
		stored := &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}
		return newDelivery(stream, stored, m.Sequence, m.Time), nil
	case err == nil, errors.Is(err, jetstream.ErrMsgNotFound):
		return Delivery{}, apperr.MessageNotFound.New()
	}
	return Delivery{}, readError(stream, err)
}
