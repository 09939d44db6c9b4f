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

// Replay to a client that reconnects: connect.go calls missed and sends what it returns before live events. For
// the replay to this gateway after a loss of Redis see outage.go.

const (
	// replayEvents and replayBytes bound the replay to a reconnecting client. A client that has missed more
	// loads the history, as on the first visit. replayBytes is well below the send buffer limit of a socket.
	replayEvents = 1000
	replayBytes  = 512 << 10
)

// errNotRecoverable means that the missed events of a client cannot be replayed.
var errNotRecoverable = errors.New("the session cannot be recovered")

// missedEvent is an event that a client has not received.
type missedEvent struct {
	payload json.RawMessage
	at      bus.Place
	receipt metadata.Receipt
}

// missed are the events that a client receives before live ones.
type missed struct {
	events []missedEvent
	bytes  int         // of their payloads
	upTo   uint64      // offset up to which the client has all events after the replay
	span   offsetRange // that has been read
}

// missed reads the visitor's replies after the pid and offset of a client. It returns errNotRecoverable if
// there are too many, if some may not be in the stream, or if the pid or offset is invalid, and
// apperr.Unavailable if the stream cannot be read. With an error, the result has what was read before it.
func (r *replyStream) missed(ctx context.Context, appID, chatUserID, pid, offset string) (missed, error) {
	state, err := r.state(ctx)
	if err != nil {
		return missed{}, apperr.Unreachable("NATS", err)
	}
	after, ok := parsePID(pid, state.Epoch)
	if ok && offset != "" {
		var last bus.Place
		last, ok = parseOffset(offset)
		// A client whose last recovery failed still sends its offset from before.
		if last.Sequence > after.Sequence {
			after = last
		}
	}
	if !ok || after.Sequence > state.Last || after.Sequence+1 < state.First {
		return missed{}, errNotRecoverable // invalid, of another epoch, or not in the stream
	}
	held, err := r.bus.Holds(ctx, subject.Replies, after)
	if err != nil {
		return missed{}, err
	}
	if !held {
		return missed{}, errNotRecoverable // the stream has lost what the client has
	}
	stored, err := r.bus.Stored(ctx, subject.Replies, subject.Reply(appID, chatUserID))
	if err != nil {
		return missed{}, err
	}
	found, err := r.missedSince(ctx, stored, after.Sequence)
	if err == nil && state.Replicas > 1 {
		err = r.confirm(ctx, stored, &found)
	}
	found.span = offsetRange{after: after.Sequence, upTo: found.upTo}
	if err != nil && !errors.Is(err, errNotRecoverable) {
		err = apperr.Unreachable("NATS", err)
	}
	return found, err
}

// missedSince reads the replies on a stored subject after an offset, within the bounds of a replay.
func (r *replyStream) missedSince(ctx context.Context, stored string, after uint64) (missed, error) {
	found := missed{upTo: after}
	err := r.read(ctx, stored, after, func(d bus.Delivery) error {
		found.upTo = d.Sequence
		if publishedBefore(d) {
			return nil
		}
		reply, err := event.DecodeReply(d.Subject, d.Data, d.Time)
		if err != nil {
			return nil //nolint:nilerr // malformed: the consumer makes it a dead letter
		}
		p := payload(&reply)
		found.events = append(found.events, missedEvent{payload: p, at: d.Place(), receipt: receiptOf(&reply)})
		found.bytes += len(p)
		if found.bytes > replayBytes || len(found.events) > replayEvents {
			return errNotRecoverable
		}
		return nil
	})
	return found, err
}

// confirm continues reading until it has the last reply of the stream's leader: the replica that served the
// read may lag.
func (r *replyStream) confirm(ctx context.Context, stored string, found *missed) error {
	for {
		last, err := r.lastOf(ctx, stored)
		if err != nil || last <= found.upTo {
			return err
		}
		sleep(ctx, replicaPause)
		more, err := r.missedSince(ctx, stored, found.upTo)
		found.bytes += more.bytes
		if err != nil {
			return err
		}
		found.events = append(found.events, more.events...)
		found.upTo = more.upTo
		if found.bytes > replayBytes || len(found.events) > replayEvents {
			return errNotRecoverable
		}
	}
}
