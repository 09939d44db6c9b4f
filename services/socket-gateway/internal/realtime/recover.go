package realtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

const (
	// replayEvents and replayBytes bound what a reconnecting client gets. A client that has missed more loads the history, as at
	// the first visit. The bytes are well below what may wait for one socket.
	replayEvents = 1000
	replayBytes  = 512 << 10
)

// errNotRecoverable means that the events that a client has missed cannot be replayed.
var errNotRecoverable = errors.New("the session cannot be recovered")

// missedEvent is an event that a client has not had.
type missedEvent struct {
	payload json.RawMessage
	offset  uint64
	receipt metadata.Receipt
}

// missed is the events that a client receives before new ones.
type missed struct {
	events []missedEvent
	upTo   uint64 // it has had everything up to here
}

// Missed reads the visitor's replies after the pid and offset of a client. It returns errNotRecoverable if there are too many, if some are
// removed from the stream, or if the pid or the offset is not one of ours; and apperr.Unavailable if the stream cannot be read.
func (l *Log) Missed(ctx context.Context, appID, chatUserID, pid, offset string) (missed, error) {
	state, err := l.State(ctx)
	if err != nil {
		return missed{}, apperr.Unreachable("NATS", err)
	}
	position, ok := parsePID(pid, state.Created)
	if ok && offset != "" {
		var last uint64
		last, ok = parseOffset(offset)
		// A client that could not be recovered last time still shows the offset from before that.
		position = max(position, last)
	}
	if !ok || position > state.Last || position+1 < state.First {
		return missed{}, errNotRecoverable
	}
	stored, err := l.bus.Stored(ctx, subject.Replies, subject.Reply(appID, chatUserID))
	if err != nil {
		return missed{}, err
	}
	found, err := l.missedSince(ctx, stored, position)
	if err == nil && state.Replicas > 1 {
		err = l.confirm(ctx, stored, &found)
	}
	if err != nil && !errors.Is(err, errNotRecoverable) {
		err = apperr.Unreachable("NATS", err)
	}
	return found, err
}

func (l *Log) missedSince(ctx context.Context, stored string, position uint64) (missed, error) {
	found, size := missed{upTo: position}, 0
	err := l.read(ctx, stored, position, func(d bus.Delivery) error {
		found.upTo = d.Sequence
		if emitted(d) {
			return nil
		}
		reply, err := event.Decode[event.Reply](d.Subject, d.Data)
		if err != nil {
			return nil //nolint:nilerr // the consumer gives it up as well
		}
		p := payload(&reply)
		found.events = append(found.events, missedEvent{p, d.Sequence, receiptOf(&reply)})
		if size += len(p); size > replayBytes || len(found.events) > replayEvents {
			return errNotRecoverable
		}
		return nil
	})
	return found, err
}

// confirm reads on until the replica that answers has caught up with the stream's leader.
func (l *Log) confirm(ctx context.Context, stored string, found *missed) error {
	for {
		last, err := l.lastOf(ctx, stored)
		if err != nil || last <= found.upTo {
			return err
		}
		pause(ctx, replicaPause)
		more, err := l.missedSince(ctx, stored, found.upTo)
		if err != nil {
			return err
		}
		found.events, found.upTo = append(found.events, more.events...), more.upTo
		if len(found.events) > replayEvents {
			return errNotRecoverable
		}
	}
}
