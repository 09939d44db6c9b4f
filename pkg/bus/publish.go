package bus

// Publishing events: validation, the charge to the account, the message, and the wait for the stream.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	publishTimeout = 5 * time.Second
	// A subject may have no stream for a moment, while the streams are being created or a cluster elects a
	// leader. Publish retries a few times before it fails.
	noStreamTries = 3
	noStreamWait  = 200 * time.Millisecond

	fullRetryAfter        = 30 * time.Second
	notWritableRetryAfter = probeInterval
)

// Headers of an event: CloudEvents 1.0 attributes in the binary mode of the NATS protocol binding, the
// JetStream message id, and the W3C trace context.
const (
	headerID          = "ce-id"
	headerType        = "ce-type"
	headerSource      = "ce-source"
	headerTime        = "ce-time"
	headerSpecVersion = "ce-specversion"
	headerContentType = "ce-datacontenttype"
	headerMsgID       = jetstream.MsgIDHeader
	headerTraceParent = "traceparent"
	headerRequestID   = "ce-requestid" // extension attribute: X-Request-Id of the HTTP request that caused the event

	specVersion = "1.0"
	contentType = "application/json"
)

// Meter charges the bytes of events to the budgets of their accounts; see pkg/budget.
type Meter interface {
	// Charge charges the bytes that the account has not paid yet, and returns the account with them as prepaid.
	// fill is the used share, 0 to 1, of the fullest stream that the events of the account reach.
	Charge(ctx context.Context, a event.Account, bytes int, fill float64) (event.Account, error)
}

// headerBytes is what an event takes in its stream beside its payload: the subject, the headers and the
// record of the store.
const headerBytes = 512

// Charge charges an event of about that many bytes of payload before it is published, for callers that write
// something else first. It returns the account that has paid for it. Errors: apperr.TooMany, and
// apperr.Unavailable with the reason STREAM_FULL if the rest of a stream is kept for others; both are [Permanent]
// for consumers: a delivery that waited for a budget would hold up the other tenants of its partition.
func (b *Bus) Charge(ctx context.Context, a event.Account, payload int) (event.Account, error) {
	if b.cfg.Meter == nil {
		return a, nil
	}
	charged, err := b.cfg.Meter.Charge(ctx, a, payload+headerBytes, b.fillFor(a.Payer))
	if err != nil {
		return charged, Permanent(err)
	}
	return charged, nil
}

// Publish charges the event to the account and returns nil after the event's stream has acknowledged it and has it on
// the disk, as its [Sync] says. It
// waits for up to 5 seconds, or until ctx ends. It fails at once while NATS is disconnected or cannot write
// the stream. Errors: apperr.TooMany if a budget of the account is used up; apperr.Unavailable, with the
// reason STREAM_FULL if the stream is at its limit and STREAM_NOT_WRITABLE if NATS cannot write it;
// apperr.Invalid if no stream can store the event.
func (b *Bus) Publish(ctx context.Context, a event.Account, e event.Event) error {
	started := time.Now()
	ctx, span := b.beginSend(ctx, e)
	err := b.publishEvent(ctx, a, e)
	result, err := publishResult(err)
	b.metrics.published[result].Observe(time.Since(started).Seconds())
	span.Finish(err)
	if err != nil {
		return fmt.Errorf("publishing %s: %w", e.Type(), err)
	}
	return nil
}

// publishEvent encodes an event, charges it to the account, and publishes it.
func (b *Bus) publishEvent(ctx context.Context, a event.Account, e event.Event) error {
	env, _ := b.envelopes.Get().(*envelope) // the pool holds nothing else
	defer b.release(env)
	env.encode(e, b.source, event.RequestID(ctx), event.TraceParent(ctx))
	if !subject.Literal(env.msg.Subject) || !subject.Valid(env.msg.Header[headerID][0]) {
		return fmt.Errorf("%w %q, id %q", nats.ErrBadSubject, env.msg.Subject, env.msg.Header[headerID][0])
	}
	if !a.Valid() {
		return fmt.Errorf("%w: nobody pays for %s", nats.ErrBadSubject, env.msg.Subject)
	}
	if _, err := b.Charge(ctx, a, event.ChargedBytes(e, len(env.payload))); err != nil {
		return err
	}
	return b.publishMsg(ctx, &env.msg)
}

// publishMsg publishes m and returns after the stream's acknowledgement, or with the reason for the failure.
// It does not retain m.
func (b *Bus) publishMsg(ctx context.Context, m *nats.Msg) error {
	// The steps of [WriteGuard.Do], whose closure would cost an allocation per publish.
	began := time.Now()
	guard := b.guards.of(m.Subject)
	attempt, err := guard.begin(began)
	if err != nil {
		return err
	}
	ctx, cancel := attempt.bound(ctx)
	defer cancel()
	err = b.publishGuarded(ctx, guard.name(), m)
	return attempt.end(err, time.Since(began))
}

// publishGuarded posts m and waits until the stream has it for good. It retries while no stream has the subject, or
// nothing syncs the stream.
func (b *Bus) publishGuarded(ctx context.Context, stream string, m *nats.Msg) error {
	for try := 1; ; try++ {
		err := b.publishOnce(ctx, stream, m)
		if !errors.Is(err, errNoStream) && !errors.Is(err, errNotSynced) {
			return err
		}
		b.streams.check()
		if try == noStreamTries || sleep(ctx, noStreamWait) != nil {
			return err
		}
	}
}

// publishOnce posts m and waits for the acknowledgement and the sync.
func (b *Bus) publishOnce(ctx context.Context, stream string, m *nats.Msg) error {
	sync := b.syncs[stream]
	mode, known := sync.sync()
	if mode != SyncShared {
		sync = nil
	}
	err := b.acks.await(ctx, sync, func(reply string) {
		m.Reply = reply
		b.outbox.post(m)
	})
	if err != nil {
		b.outbox.withdraw(m)
		return err
	}
	if !known {
		return b.Sync(ctx, stream)
	}
	return nil
}

// sleep returns nil after d, or the context's error if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publishResult maps the error of a publish to its metrics result and to a coded error.
func publishResult(err error) (result string, coded error) {
	if err == nil {
		return resultOK, nil
	}
	if errors.Is(err, nats.ErrMaxPayload) || apiError(err) == codeMessageTooLarge {
		return resultInvalid, apperr.EventTooLarge.Wrap(err)
	}
	if errors.Is(err, nats.ErrBadSubject) {
		return resultInvalid, apperr.InvalidEvent.Wrap(err)
	}
	if apperr.Is(err, apperr.TooMany) {
		return resultOverBudget, err
	}
	if refused, ok := errors.AsType[*apperr.Error](err); ok && refused.Reason == apperr.StreamFull.Reason {
		return resultFull, err
	}
	unavailable := apperr.Unreachable("NATS", err)
	if IsFull(err) {
		unavailable.Reason = apperr.StreamFull.Reason
		unavailable.RetryAfter = fullRetryAfter
		return resultFull, unavailable
	}
	if NotWritable(err, unavailable) {
		return resultNotWritable, unavailable
	}
	if errors.Is(err, errNotSynced) {
		return resultNotSynced, unavailable
	}
	return resultUnavailable, unavailable
}

// Error codes of JetStream (errors.json of nats-server) without a constant in nats.go.
const (
	codeNoResources     jetstream.ErrorCode = 10023
	codeStorageExceeded jetstream.ErrorCode = 10047
	codeMessageTooLarge jetstream.ErrorCode = 10054
	codeStoreFailed     jetstream.ErrorCode = 10077
)

func apiError(err error) jetstream.ErrorCode {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.ErrorCode
	}
	return 0
}

// IsFull reports whether err means that a stream is at its limit. JetStream reports this as a failed store
// that names the limit in its text.
func IsFull(err error) bool {
	switch apiError(err) {
	case codeNoResources, codeStorageExceeded:
		return true
	case codeStoreFailed:
		return strings.Contains(err.Error(), "maximum")
	}
	return false
}

// NotWritable reports whether err means that NATS cannot write a stream. If so, it sets the reason and
// RetryAfter of response.
func NotWritable(err error, response *apperr.Error) bool {
	_, ok := errors.AsType[*notWritableError](err)
	if ok {
		response.Reason = apperr.StreamNotWritable.Reason
		response.RetryAfter = notWritableRetryAfter
	}
	return ok
}

// envelope is a reusable message: it keeps its payload buffer, its header map and the map's values.
type envelope struct {
	msg      nats.Msg
	payload  []byte
	timeText []byte // buffer of the time header
	request  []string
	trace    []string
}

// maxKeptPayload limits the payload buffer of a pooled envelope.
const maxKeptPayload = 64 << 10

func newEnvelope() *envelope {
	one := func(s string) []string { return []string{s} }
	return &envelope{
		request: one(""), trace: one(""),
		msg: nats.Msg{Header: nats.Header{
			headerID: one(""), headerType: one(""), headerSource: one(""), headerTime: one(""), headerMsgID: one(""),
			headerSpecVersion: one(specVersion), headerContentType: one(contentType),
		}},
	}
}

// encode writes an event to the envelope.
func (v *envelope) encode(e event.Event, source, requestID, traceParent string) {
	h := v.msg.Header
	id := e.EventID()
	v.timeText = chat.AppendTime(v.timeText[:0], e.OccurredAt())
	h[headerID][0] = id
	h[headerMsgID][0] = id // the stream drops an event with the id of a stored one
	h[headerType][0] = e.Type()
	h[headerSource][0] = source
	h[headerTime][0] = string(v.timeText)
	setOrDelete(h, headerRequestID, v.request, requestID)
	setOrDelete(h, headerTraceParent, v.trace, traceParent)
	v.payload = e.AppendJSON(v.payload[:0])
	v.msg.Subject = e.Subject()
	v.msg.Data = v.payload
}

// setOrDelete sets a header to value, in the reused slice values, or deletes it if value is empty.
func setOrDelete(h nats.Header, name string, values []string, value string) {
	if value == "" {
		delete(h, name)
		return
	}
	values[0] = value
	h[name] = values
}

// release returns an envelope to the pool.
func (b *Bus) release(v *envelope) {
	if cap(v.payload) > maxKeptPayload {
		v.payload = nil
	}
	v.msg.Data = nil
	b.envelopes.Put(v)
}
