package bus

// Reading through direct gets, without a consumer: cheap for few messages, for the gateways.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	directBatch = 256
	directBytes = 512 << 10
	// The batches of [Bus.Since] are small, because other answers wait for them on the same connection.
	sinceBatch = 64
	sinceBytes = 64 << 10
	// batchQueue is the capacity of a subscription's queue. It holds the largest batch: nats-server answers
	// multi_last with at most 1,024 messages. The default of nats.go, 65,536 messages, allocates 512 KiB for
	// each read.
	batchQueue = 2048
	// batchTimeout bounds a batch, with what its reader does between the messages.
	batchTimeout = 30 * time.Second
)

// directGet is a batch request of the JetStream direct get API (NATS ADR-31).
type directGet struct {
	Seq        uint64     `json:"seq,omitempty"`
	StartTime  *time.Time `json:"start_time,omitempty"`
	NextBySubj string     `json:"next_by_subj,omitempty"`
	LastOf     []string   `json:"multi_last,omitempty"`
	Batch      int        `json:"batch,omitempty"`
	MaxBytes   int        `json:"max_bytes,omitempty"`
}

// After yields the messages of a subject or filter in its stored form (see [Bus.Stored]) after a sequence, in order.
// Unlike [Bus.Read] it creates no consumer and thus needs only read permissions. The response may come from a
// replica that lacks the newest messages.
func (b *Bus) After(ctx context.Context, stream, stored string, sequence uint64) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		b.readDirect(ctx, stream, directGet{Seq: sequence + 1, NextBySubj: stored}, yield)
	}
}

// Since yields the messages on a published subject or filter that a stream has stored since a time, in order. Like
// [Bus.After] it needs no consumer, and the response may lack the newest messages.
func (b *Bus) Since(ctx context.Context, stream, filter string, at time.Time) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		stored, err := b.Stored(ctx, stream, filter)
		if err != nil {
			yield(Delivery{}, err)
			return
		}
		request := directGet{StartTime: &at, NextBySubj: stored, Batch: sinceBatch, MaxBytes: sinceBytes}
		b.readDirect(ctx, stream, request, yield)
	}
}

// readDirect yields the messages of a request, batch by batch, by default with directBatch and directBytes.
func (b *Bus) readDirect(ctx context.Context, stream string, request directGet, yield func(Delivery, error) bool) {
	fail := func(err error) {
		yield(Delivery{}, apperr.Unreachable("NATS", fmt.Errorf("reading stream %s: %w", stream, err)))
	}
	if !b.conn.IsConnected() {
		fail(nats.ErrDisconnected)
		return
	}
	sub, err := b.conn.SubscribeSync(b.conn.NewInbox())
	if err != nil {
		fail(err)
		return
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only once the connection, and with it the subscription, is closed
	request.Batch = cmp.Or(request.Batch, directBatch)
	request.MaxBytes = cmp.Or(request.MaxBytes, directBytes)
	for more := true; more; {
		var last uint64
		last, more, err = b.directBatch(ctx, sub, stream, request, yield)
		if err != nil {
			fail(err)
			return
		}
		request.StartTime = nil
		request.Seq = last + 1
	}
}

// directBatch yields one batch. It returns the sequence of the last message, and whether to request another batch.
func (b *Bus) directBatch(
	ctx context.Context, sub *nats.Subscription, stream string, request directGet, yield func(Delivery, error) bool,
) (last uint64, more bool, err error) {
	ctx, cancel := b.state.request(ctx, batchTimeout) // the handlers of consumers have no deadline
	defer cancel()
	text, err := json.Marshal(request)
	if err != nil {
		return 0, false, err
	}
	if err := b.conn.PublishRequest("$JS.API.DIRECT.GET."+stream, sub.Subject, text); err != nil {
		return 0, false, err
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return 0, false, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204": // end of the batch
			return last, last > 0 && m.Header.Get("Nats-Num-Pending") != "0", nil
		case "404":
			return last, false, nil
		default:
			return last, false, fmt.Errorf("%s %s", status, m.Header.Get("Description"))
		}
		d, err := directDelivery(stream, m)
		if err != nil {
			return last, false, err
		}
		last = d.Sequence
		if !yield(d, nil) {
			return last, false, nil
		}
	}
}

// getDirect returns the message that a direct get selects, or NotFound. target is the stream, followed by a dot and
// the stored subject for its last message.
func (b *Bus) getDirect(ctx context.Context, target string, request []byte) (*nats.Msg, error) {
	ctx, cancel := b.state.request(ctx, apiTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+target, request)
	if err != nil {
		return nil, apperr.Unreachable("NATS", fmt.Errorf("reading a message of %s: %w", target, err))
	}
	switch m.Header.Get("Status") {
	case "":
		return m, nil
	case "404":
		return nil, apperr.MessageNotFound.New()
	}
	description := m.Header.Get("Description")
	return nil, apperr.Unreachable("NATS", fmt.Errorf("reading a message of %s: %s", target, description))
}

// directDelivery returns the delivery of a response, whose headers name its subject, sequence and time.
func directDelivery(stream string, m *nats.Msg) (Delivery, error) {
	sequence, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return Delivery{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return Delivery{}, err
	}
	stored := &nats.Msg{Subject: m.Header.Get(jetstream.SubjectHeader), Header: m.Header, Data: m.Data}
	return newDelivery(stream, stored, sequence, at), nil
}
