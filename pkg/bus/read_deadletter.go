package bus

// Listing and replaying dead letters, for parleyctl and the panel.

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Headers of a replayed dead letter.
const (
	// HeaderReplayFor names the consumer that the replay is for. Other consumers skip the event.
	HeaderReplayFor = "Parley-Replay-For"
	// HeaderReplayLetter is the sequence of the dead letter in DEAD.
	HeaderReplayLetter = "Parley-Replay-Letter"

	headerExpectedStream = "Nats-Expected-Stream"
	deadHeaderPrefix     = "Parley-Dead-"
)

// DeadLetter is an event that a consumer gave up on.
type DeadLetter struct {
	Sequence uint64    // in DEAD
	Time     time.Time // when the consumer gave up

	Stream   string // stream of the event; Original is its sequence there
	Consumer string
	Subject  string
	Original uint64

	EventID   string
	EventType string
	Attempts  int
	Reason    string // "<error code>: <error text>"
	Message   string // public part of the reason, shown to the company of the event
	Sender    string // the company that sent the message; empty: no company did
	Truncated bool   // the letter has no payload; the original has it
	Header    nats.Header
	Data      []byte
}

// AddressedTo reports whether a consumer should handle a delivery with these headers: always, unless it is a
// replay for another consumer.
func AddressedTo(h nats.Header, consumer string) bool {
	names, replay := h[HeaderReplayFor]
	return !replay || len(names) == 0 || names[0] == consumer
}

// DeadLetters yields the dead letters of a stream and a consumer whose sequence is greater than after, oldest
// first. An empty stream or consumer matches all; one that is not a name is [apperr.Invalid].
func (b *Bus) DeadLetters(ctx context.Context, stream, consumer string, after uint64) iter.Seq2[DeadLetter, error] {
	orWildcard := func(token string) string {
		if token == "" {
			return "*"
		}
		return token
	}
	return func(yield func(DeadLetter, error) bool) {
		if err := checkNames(stream, consumer); err != nil {
			yield(DeadLetter{}, err)
			return
		}
		selection := Range{
			Stream:  subject.Dead,
			Filters: []string{subject.DeadLetter(orWildcard(stream), orWildcard(consumer))},
			After:   after,
		}
		for d, err := range b.Read(ctx, selection) {
			if !yield(ReadDeadLetter(d), err) || err != nil {
				return
			}
		}
	}
}

// checkNames refuses names of a stream and a consumer that are not tokens of a subject; empty ones are allowed.
func checkNames(stream, consumer string) error {
	const fault = "must be a name of at most 255 characters without dots, wildcards or white space"
	var faults apperr.Fields
	if stream != "" && !subject.Valid(stream) {
		faults.Add("stream", fault)
	}
	if consumer != "" && !subject.Valid(consumer) {
		faults.Add("consumer", fault)
	}
	return faults.Err()
}

// DeadLetter returns the dead letter with the given sequence in DEAD, or NotFound.
func (b *Bus) DeadLetter(ctx context.Context, sequence uint64) (DeadLetter, error) {
	d, err := b.Get(ctx, subject.Dead, sequence)
	if apperr.Is(err, apperr.NotFound) {
		return DeadLetter{}, deadLetterNotFound(sequence)
	}
	return ReadDeadLetter(d), err
}

func deadLetterNotFound(sequence uint64) error {
	return apperr.DeadLetterNotFound.WithMessage(fmt.Sprintf("Dead letter %d not found", sequence))
}

// ReadDeadLetter decodes a delivery of DEAD.
func ReadDeadLetter(d Delivery) DeadLetter {
	l := DeadLetter{
		Sequence:  d.Sequence,
		Time:      d.Time,
		Data:      d.Data,
		Header:    d.Header,
		Stream:    d.Header.Get(HeaderDeadStream),
		Consumer:  d.Header.Get(HeaderDeadConsumer),
		Subject:   d.Header.Get(HeaderDeadSubject),
		EventID:   d.Header.Get(headerID),
		EventType: d.Header.Get(headerType),
		Reason:    d.Header.Get(HeaderDeadReason),
		Message:   d.Header.Get(HeaderDeadMessage),
		Sender:    d.Header.Get(HeaderDeadSender),
		Truncated: d.Header.Get(HeaderDeadTruncated) == "true",
	}
	if l.EventID == "" {
		l.EventID = d.Header.Get(HeaderDeadMessageID)
	}
	// A malformed number, written by another publisher, stays zero.
	l.Original, _ = strconv.ParseUint(d.Header.Get(HeaderDeadSequence), 10, 64)
	l.Attempts, _ = strconv.Atoi(d.Header.Get(HeaderDeadAttempts))
	if at, err := time.Parse(chat.TimeFormat, d.Header.Get(HeaderDeadTime)); err == nil {
		l.Time = at
	}
	return l
}

// Replay publishes the event of a dead letter again, for the consumer that gave up on it, and removes the
// dead letter after the stream has stored the event. The event keeps its id and headers except for the
// Nats-Msg-Id: within the duplicate window the stream would drop the event, and it would be lost. The new
// Nats-Msg-Id derives from the dead letter, so that concurrent replays publish the event once. If a step
// fails, the dead letter remains.
func (b *Bus) Replay(ctx context.Context, l DeadLetter) error {
	data, err := b.payload(ctx, l)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: l.Subject, Data: data, Header: replayHeader(l)}
	if !subject.Literal(m.Subject) || !subject.Valid(l.Stream) || !subject.Valid(l.Consumer) {
		return apperr.New(
			apperr.Invalid,
			"INVALID_DEAD_LETTER",
			fmt.Sprintf("Dead letter %d lacks its stream, subject or consumer", l.Sequence),
		)
	}
	if _, err := publishResult(b.publishMsg(ctx, m)); err != nil {
		return fmt.Errorf("replaying dead letter %d: %w", l.Sequence, err)
	}
	return b.DropDeadLetter(ctx, l.Sequence)
}

// payload returns the payload of the event: that of the dead letter or, if truncated, that of the original.
func (b *Bus) payload(ctx context.Context, l DeadLetter) ([]byte, error) {
	if !l.Truncated {
		return l.Data, nil
	}
	original, err := b.Get(ctx, l.Stream, l.Original)
	if err == nil && original.Subject == l.Subject &&
		(original.Header.Get(headerID) == l.EventID || original.ID == l.EventID) {
		return original.Data, nil
	}
	if err == nil || apperr.Is(err, apperr.NotFound) {
		const text = "Dead letter %d has no payload, and stream %s no longer has the original"
		return nil, apperr.New(apperr.NotFound, "ORIGINAL_GONE", fmt.Sprintf(text, l.Sequence, l.Stream))
	}
	return nil, err
}

func replayHeader(l DeadLetter) nats.Header {
	h := nats.Header{}
	maps.Copy(h, l.Header)
	for name := range h {
		if strings.HasPrefix(name, deadHeaderPrefix) || strings.HasPrefix(name, "Nats-") {
			delete(h, name)
		}
	}
	sequence := strconv.FormatUint(l.Sequence, 10)
	h[headerMsgID] = []string{"replay-" + sequence + "-" + strconv.FormatInt(l.Time.UnixNano(), 36)}
	h[headerExpectedStream] = []string{l.Stream}
	h[HeaderReplayFor] = []string{l.Consumer}
	// a layer that sends no CloudEvents attributes: its id was the Nats-Msg-Id
	if h.Get(headerID) == "" && l.EventID != "" {
		h[headerID] = []string{l.EventID}
	}
	h[HeaderReplayLetter] = []string{sequence}
	return h
}

// DropDeadLetter removes a dead letter permanently. It returns NotFound if it does not exist.
func (b *Bus) DropDeadLetter(ctx context.Context, sequence uint64) error {
	if _, err := b.DeadLetter(ctx, sequence); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	dead, err := b.js.Stream(ctx, subject.Dead)
	if err == nil {
		err = dead.DeleteMsg(ctx, sequence)
	}
	if err != nil {
		return apperr.Unreachable("NATS", fmt.Errorf("removing dead letter %d: %w", sequence, err))
	}
	return nil
}
