package bus

// The form of a dead letter and its publication to DEAD; consume_handle.go decides when.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Headers of a dead letter, in addition to those of the original. Stream and sequence locate the original;
// with its subject the event can be replayed.
const (
	HeaderDeadStream    = "Parley-Dead-Stream"
	HeaderDeadConsumer  = "Parley-Dead-Consumer"
	HeaderDeadSubject   = "Parley-Dead-Subject"
	HeaderDeadSequence  = "Parley-Dead-Sequence"
	HeaderDeadAttempts  = "Parley-Dead-Attempts"
	HeaderDeadReason    = "Parley-Dead-Reason"  // "<error code>: <error text>"
	HeaderDeadMessage   = "Parley-Dead-Message" // public part of the reason
	HeaderDeadTime      = "Parley-Dead-Time"
	HeaderDeadMessageID = "Parley-Dead-Message-Id" // the original's Nats-Msg-Id
	HeaderDeadSender    = "Parley-Dead-Sender"     // the company that sent the message; absent: no company did
	// HeaderDeadTruncated is "true" if the letter has no payload: it exceeded the limit with these headers, a
	// budget was used up, or DEAD is half full.
	HeaderDeadTruncated = "Parley-Dead-Truncated"
)

const (
	maxReason = 1024
	// deadPayloadShare: all tenants share DEAD, and a full one stops the consumers. From this share on letters come
	// without their payload, which the original has: a tenant's failing events would otherwise fill DEAD sooner than the
	// stream that they came from. What a consumer gave up on because a budget was used up never has its payload, and
	// is only logged from there on.
	deadPayloadShare = 0.5
	// deadShare: from this share on every letter is only logged, so that no tenant's failing events stop the others.
	// The event stays in its stream, and the log has its sequence.
	deadShare = 7.0 / 8
)

// newDeadLetter returns the dead letter of a task: the original event plus the reason. Its Nats-Msg-Id
// derives from the delivery and the consumer, so that a consumer stores one dead letter per delivery.
func (b *Bus) newDeadLetter(c Consumer, t *task) *nats.Msg {
	d := t.delivery
	m := &nats.Msg{Subject: subject.DeadLetter(c.Stream, c.Durable), Data: d.Data, Header: deadLetterHeader(d)}
	sequence := strconv.FormatUint(d.Sequence, 10)
	set := func(name, value string) { m.Header[name] = []string{value} }
	stored := strconv.FormatInt(d.Time.UnixNano(), 36)
	set(headerMsgID, strings.Join([]string{c.Stream, c.Durable, sequence, stored}, "-"))
	set(HeaderDeadStream, c.Stream)
	set(HeaderDeadConsumer, c.Durable)
	set(HeaderDeadSubject, d.Subject)
	set(HeaderDeadSequence, sequence)
	set(HeaderDeadAttempts, strconv.Itoa(d.Attempt))
	set(HeaderDeadReason, reason(t.dead))
	set(HeaderDeadMessage, publicMessage(t.dead))
	set(HeaderDeadTime, time.Now().UTC().Format(chat.TimeFormat))
	if d.ID != "" {
		set(HeaderDeadMessageID, d.ID)
	}
	if sender, ok := senderOf(d); ok {
		set(HeaderDeadSender, sender)
	}
	if overBudget(t.dead) || b.deadIsFilling() {
		m.Data = nil
		set(HeaderDeadTruncated, "true")
	}
	return m
}

// senderOf returns the company that sent the message of an event. A reply's subject does not name it, and most
// replies are not a company's.
func senderOf(d Delivery) (companyID string, ok bool) {
	companyID, ok = subject.CompanyOf(d.Subject)
	if ok {
		return companyID, true
	}
	var reply struct {
		CompanyID string `json:"companyId"`
		Receipt   bool   `json:"receipt"`
	}
	if d.Stream != subject.Replies || json.Unmarshal(d.Data, &reply) != nil {
		return "", false
	}
	return reply.CompanyID, reply.Receipt && subject.Valid(reply.CompanyID)
}

// overBudget reports whether a budget refused what a handler had to do, or the rest of a stream is kept for others.
func overBudget(err error) bool {
	return apperr.Is(err, apperr.TooMany) || apperr.ReasonOf(err) == apperr.StreamFull.Reason
}

// keepsDead reports whether DEAD has room for the reason for which a consumer gives up.
func (b *Bus) keepsDead(reason error) bool {
	if overBudget(reason) {
		return !b.deadIsFilling()
	}
	return b.fills.fullest(subject.Dead) < deadShare
}

func (b *Bus) deadIsFilling() bool { return b.fills.fullest(subject.Dead) >= deadPayloadShare }

// deadLetterHeader copies the original's headers, except for Nats- headers, which JetStream would interpret.
func deadLetterHeader(d Delivery) nats.Header {
	h := make(nats.Header, len(d.Header)+8)
	for name, values := range d.Header {
		if !strings.HasPrefix(name, "Nats-") {
			h[name] = values
		}
	}
	return h
}

// reason formats an error as one line of bounded length.
func reason(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n") // drops the stack of a panic, which is in the log
	text = string(apperr.CodeOf(err)) + ": " + strings.Map(printable, text)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "")
	}
	return text
}

// publicMessage returns the error message that an API client would see, without the cause.
func publicMessage(err error) string {
	e, ok := errors.AsType[*apperr.Error](err)
	if !ok || e.Code == apperr.Internal || e.Message == "" {
		return "Internal error"
	}
	text := strings.Map(printable, e.Message)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "")
	}
	return text
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// publishDead publishes a dead letter and returns after DEAD has stored it. It drops a payload that is too
// large: the original is still in its stream.
func (b *Bus) publishDead(ctx context.Context, m *nats.Msg) (err error) {
	if b.cfg.Tracer != nil {
		var span *tracing.Span
		ctx, span = b.send(ctx, m.Subject, m.Header[headerMsgID][0])
		defer func() { span.Finish(err) }()
		m.Header[headerTraceParent] = []string{event.TraceParent(ctx)}
	}
	err = b.publishMsg(ctx, m)
	if errors.Is(err, nats.ErrMaxPayload) || apiError(err) == codeMessageTooLarge {
		m.Data = nil
		m.Header[HeaderDeadTruncated] = []string{"true"}
		err = b.publishMsg(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", m.Subject, err)
	}
	return nil
}
