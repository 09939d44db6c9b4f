package bus

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
	// readPatience is how long a reader waits for what the server has announced before it asks whether that is still so.
	readPatience = 2 * time.Second
	// readerLife is how long the server keeps a reader of which it hears nothing.
	readerLife = 30 * time.Second
)

// Span is a part of a stream.
type Span struct {
	Stream      string
	Filters     []string  // subjects on which was published; empty: all
	Since       time.Time // what the stream took from then on; zero: all
	New         bool      // only what the stream takes from now on; Since does not count
	After       uint64    // only what follows this sequence; Since and New do not count
	HeadersOnly bool      // without the payloads
	Follow      bool      // continue with new events; otherwise the span ends with the stored ones
}

func (s Span) config(partitions int) jetstream.OrderedConsumerConfig {
	filters := make([]string, len(s.Filters))
	for i, f := range s.Filters {
		filters[i] = subject.Stored(f, partitions)
	}
	c := jetstream.OrderedConsumerConfig{
		FilterSubjects: filters, HeadersOnly: s.HeadersOnly, InactiveThreshold: readerLife, DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	switch {
	case s.After > 0:
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, s.After+1
	case s.New:
		c.DeliverPolicy = jetstream.DeliverNewPolicy
	case !s.Since.IsZero():
		c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, &s.Since
	}
	return c
}

// Read reads a span in stream order, without affecting any consumer. It ends with the span, with ctx (of a span that
// follows, that is no error), or with an error.
func (b *Bus) Read(ctx context.Context, s Span) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		for r, err := range b.read(ctx, s) {
			if r.opened {
				continue
			}
			if !yield(r.Delivery, err) {
				return
			}
		}
	}
}

// reading is a delivery, and how many of the span follow it at that moment. The first of a span has no delivery: it only says
// how many follow.
type reading struct {
	Delivery
	pending uint64
	opened  bool
}

func (b *Bus) read(ctx context.Context, s Span) iter.Seq2[reading, error] {
	return func(yield func(reading, error) bool) {
		r, err := b.openReader(ctx, s)
		if err != nil {
			yield(reading{}, err)
			return
		}
		defer r.close()
		d, err := reading{pending: r.pending, opened: true}, error(nil)
		for !errors.Is(err, errSpanEnd) && yield(d, err) && err == nil {
			d, err = r.next(ctx)
		}
	}
}

var errSpanEnd = errors.New("the span has ended")

// reader is an ephemeral consumer of one goroutine.
type reader struct {
	bus      *Bus
	span     Span
	consumer jetstream.Consumer
	messages jetstream.MessagesContext
	pending  uint64 // announced and not read
}

func (b *Bus) openReader(ctx context.Context, s Span) (*reader, error) {
	if !b.conn.IsConnected() {
		return nil, apperr.Unreachable("NATS", nats.ErrDisconnected)
	}
	opening, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	partitions, err := b.partitions.of(opening, s.Stream)
	if err != nil {
		return nil, readError(s.Stream, err)
	}
	consumer, err := b.js.OrderedConsumer(opening, s.Stream, s.config(partitions))
	if err != nil {
		return nil, readError(s.Stream, err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, readError(s.Stream, err)
	}
	return &reader{bus: b, span: s, consumer: consumer, messages: messages, pending: consumer.CachedInfo().NumPending}, nil
}

func readError(stream string, err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return apperr.StreamNotFound.WithMessage("There is no stream " + stream).Wrap(err)
	}
	return apperr.Unreachable("NATS", fmt.Errorf("reading stream %s: %w", stream, err))
}

func (r *reader) next(ctx context.Context) (reading, error) {
	for r.span.Follow || r.pending > 0 {
		m, err := r.await(ctx)
		switch {
		case err == nil:
			return r.read(m)
		case ctx.Err() != nil && r.span.Follow:
			return reading{}, errSpanEnd
		case ctx.Err() != nil:
			return reading{}, ctx.Err()
		case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout):
			return reading{}, readError(r.span.Stream, err)
		}
		if err := r.look(ctx); err != nil {
			return reading{}, err
		}
	}
	return reading{}, errSpanEnd
}

func (r *reader) await(ctx context.Context) (jetstream.Msg, error) {
	if !r.span.Follow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, readPatience)
		defer cancel()
	}
	return r.messages.Next(jetstream.NextContext(ctx))
}

// look asks what is left of the span: what was announced may have been removed since.
func (r *reader) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return readError(r.span.Stream, err)
	}
	r.pending = info.NumPending
	return nil
}

func (r *reader) read(m jetstream.Msg) (reading, error) {
	meta, err := m.Metadata()
	if err != nil {
		return reading{}, fmt.Errorf("reading stream %s: %w", r.span.Stream, err)
	}
	r.pending = meta.NumPending
	return reading{pending: meta.NumPending, Delivery: readDelivery(m, meta)}, nil
}

// readDelivery returns a message of a consumer that acknowledges nothing.
func readDelivery(m jetstream.Msg, meta *jetstream.MsgMetadata) Delivery {
	return Delivery{
		Stream: meta.Stream, Subject: subject.Published(m.Subject()), Data: m.Data(), Header: m.Headers(), ID: m.Headers().Get(headerMsgID),
		Sequence: meta.Sequence.Stream, Time: meta.Timestamp.UTC(),
	}
}

// close stops reading and deletes the reader's consumer, which the server would otherwise keep for a while.
func (r *reader) close() {
	r.messages.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if info := r.consumer.CachedInfo(); info != nil && r.bus.conn.IsConnected() {
		_ = r.bus.js.DeleteConsumer(ctx, r.span.Stream, info.Name) // else it goes by itself
	}
}

// Get returns the message with that sequence from its stream, or NotFound.
func (b *Bus) Get(ctx context.Context, stream string, sequence uint64) (Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return Delivery{}, readError(stream, err)
	}
	m, err := s.GetMsg(ctx, max(sequence, 1)) // the server does not count from zero
	switch {
	case err == nil && m.Sequence == sequence:
		return Delivery{
			Stream: stream, Subject: subject.Published(m.Subject), Data: m.Data, Header: m.Header, ID: m.Header.Get(headerMsgID), Sequence: m.Sequence, Time: m.Time.UTC(),
		}, nil
	case err == nil, errors.Is(err, jetstream.ErrMsgNotFound):
		return Delivery{}, apperr.MessageNotFound.New()
	}
	return Delivery{}, readError(stream, err)
}
