package bus

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

// Headers of a dead letter that was published again.
const (
	// HeaderReplayFor names the one consumer that handles the event again. The others skip it.
	HeaderReplayFor = "Parley-Replay-For"
	// HeaderReplayLetter is the sequence that the letter had in DEAD.
	HeaderReplayLetter = "Parley-Replay-Letter"

	headerExpectedStream = "Nats-Expected-Stream"
	deadHeaderPrefix     = "Parley-Dead-"
)

// DeadLetter is an event that a consumer gave up on.
type DeadLetter struct {
	Sequence uint64    // in DEAD
	Time     time.Time // when the consumer gave up

	Stream   string // the event's, with its place there
	Consumer string
	Subject  string
	Original uint64

	EventID   string
	EventType string
	Attempts  int
	Reason    string // the error's code, a colon, and what happened
	Message   string // the public part of the reason, for the company of the event
	Truncated bool   // the payload was too large to travel with the reason; the original has it
	Header    nats.Header
	Data      []byte
}

// AddressedTo reports whether a consumer should handle a delivery with these headers: it should, unless the event came again for
// another consumer.
func AddressedTo(h nats.Header, consumer string) bool { return addressedTo(h, consumer) }

func addressedTo(h nats.Header, consumer string) bool {
	names, again := h[HeaderReplayFor]
	return !again || len(names) == 0 || names[0] == consumer
}

// DeadLetters reads all that DEAD holds, oldest first, or only the letters of a stream or of a consumer.
func (b *Bus) DeadLetters(ctx context.Context, stream, consumer string) iter.Seq2[DeadLetter, error] {
	any := func(token string) string {
		if token == "" {
			return "*"
		}
		return token
	}
	return func(yield func(DeadLetter, error) bool) {
		for d, err := range b.Read(ctx, Span{Stream: subject.Dead, Filters: []string{subject.DeadLetter(any(stream), any(consumer))}}) {
			if !yield(deadLetter(d), err) || err != nil {
				return
			}
		}
	}
}

// DeadLetter returns the letter with that sequence in DEAD, or NotFound.
func (b *Bus) DeadLetter(ctx context.Context, sequence uint64) (DeadLetter, error) {
	d, err := b.Get(ctx, subject.Dead, sequence)
	if apperr.Is(err, apperr.NotFound) {
		return DeadLetter{}, deadLetterNotFound(sequence)
	}
	return deadLetter(d), err
}

func deadLetterNotFound(sequence uint64) error {
	return apperr.DeadLetterNotFound.WithMessage(fmt.Sprintf("There is no dead letter %d", sequence))
}

// ReadDeadLetter reads a delivery of DEAD.
func ReadDeadLetter(d Delivery) DeadLetter { return deadLetter(d) }

func deadLetter(d Delivery) DeadLetter {
	l := DeadLetter{
		Sequence: d.Sequence, Time: d.Time, Data: d.Data, Header: d.Header,
		Stream: d.Header.Get(HeaderDeadStream), Consumer: d.Header.Get(HeaderDeadConsumer), Subject: d.Header.Get(HeaderDeadSubject),
		EventID: d.Header.Get(headerID), EventType: d.Header.Get(headerType), Reason: d.Header.Get(HeaderDeadReason),
		Message:   d.Header.Get(HeaderDeadMessage),
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

// Replay publishes the event of a letter again, for the consumer that gave up on it, and removes the letter when the stream has
// it. It keeps the event's id and headers but for the Nats-Msg-Id: within the stream's duplicate window the old one would let
// the stream drop the event, and the letter be lost. The new one is made from the letter, so that replaying a letter twice at
// once is one event. Where anything fails the letter stays.
func (b *Bus) Replay(ctx context.Context, l DeadLetter) error {
	data, err := b.payload(ctx, l)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: l.Subject, Data: data, Header: replayHeader(l)}
	if !validSubject(m.Subject) || !subject.Valid(l.Stream) || !subject.Valid(l.Consumer) {
		return apperr.New(apperr.Invalid, "INVALID_DEAD_LETTER", fmt.Sprintf("Dead letter %d does not say where it belongs", l.Sequence))
	}
	if _, err := publishOutcome(b.publishMsg(ctx, m)); err != nil {
		return fmt.Errorf("publishing dead letter %d again: %w", l.Sequence, err)
	}
	return b.DropDeadLetter(ctx, l.Sequence)
}

// payload is the event's: the letter's own, or the original's where the letter could not carry it.
func (b *Bus) payload(ctx context.Context, l DeadLetter) ([]byte, error) {
	if !l.Truncated {
		return l.Data, nil
	}
	original, err := b.Get(ctx, l.Stream, l.Original)
	if err == nil && original.Subject == l.Subject && original.Header.Get(headerID) == l.EventID {
		return original.Data, nil
	}
	if err == nil || apperr.Is(err, apperr.NotFound) {
		return nil, apperr.New(apperr.NotFound, "ORIGINAL_GONE",
			fmt.Sprintf("Dead letter %d has no payload, and stream %s does not have the original any more", l.Sequence, l.Stream))
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
	h[HeaderReplayLetter] = []string{sequence}
	return h
}

// DropDeadLetter removes a dead letter permanently. NotFound if it does not exist.
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
