package realtime

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
)

// EventPart is the event that brings a part of a message that a bot is still writing. Its argument is an object, so that clients, which
// keep a last argument that is a string as the offset of connection state recovery, keep that of the last reply.
const EventPart = "message.part"

// partStale is after how long without a part a message is not being written any more: the bot interrupts it after 30 seconds.
const partStale = 35 * time.Second

const partHead = `["` + EventPart + `",`

// encodePart returns the JSON array of the event's name and its argument.
func encodePart(p event.MessagePart) []byte {
	dst := append(make([]byte, 0, len(partHead)+len(p.Text)+256), partHead...)
	return append(p.AppendShown(dst), ']')
}

// partMark is the number of a part of a message.
type partMark struct {
	messageID string
	n         int32
}

// covers reports whether a part is not after the mark.
func (m partMark) covers(other partMark) bool {
	return m.messageID == other.messageID && other.n <= m.n
}

// partOf finds the number in what encodePart has written.
func partOf(data []byte) (mark partMark, ok bool) {
	rest, isPart := bytes.CutPrefix(data, []byte(partHead+`{"messageId":"`))
	id, rest, hasID := bytes.Cut(rest, []byte(`","n":`))
	number, _, hasN := bytes.Cut(rest, []byte(`,"`))
	n, err := strconv.ParseInt(string(number), 10, 32)
	if !isPart || !hasID || !hasN || err != nil {
		return partMark{}, false
	}
	return partMark{string(id), int32(n)}, true
}

// roomParts is what a room has had of a message that is being written.
type roomParts struct {
	last  partMark
	ahead []partAhead // sockets that were sent more of it when they joined
}

type partAhead struct {
	socket string
	mark   partMark
}

// AheadOfParts keeps the parts up to mark from a socket that has had them.
func (r *Rooms) AheadOfParts(name, socket string, mark partMark) {
	rm := r.find(name)
	if rm == nil {
		return
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if !rm.parts.last.covers(mark) {
		rm.parts.ahead = append(rm.parts.ahead, partAhead{socket, mark})
	}
}

// arrivePart delivers a part, unless the room has had it.
func (r *Rooms) arrivePart(b *socketio.Broadcast, mark partMark) int {
	rm := r.find(b.Rooms[0])
	if rm == nil {
		return r.members.Deliver(b)
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if rm.parts.last.covers(mark) {
		r.metrics.dropped(dropRepeated)
		return 0
	}
	rm.parts.last = mark
	rm.parts.ahead = slices.DeleteFunc(rm.parts.ahead, func(a partAhead) bool { return !a.mark.covers(mark) })
	for _, a := range rm.parts.ahead {
		b.Except = append(b.Except, a.socket)
	}
	return r.members.Deliver(b)
}

// Parts emits parts of messages into their rooms.
type Parts struct {
	namespace *socketio.Namespace
	metrics   *Metrics
	now       func() time.Time
}

// consumer takes parts as the one of a Deliverer takes replies.
func (d *Parts) consumer() bus.Consumer {
	return bus.Consumer{
		Stream: subject.Parts, Durable: durable, Positions: true, Concurrency: deliverers, MaxPause: retryPause, HandleBatch: d.deliver,
	}
}

// deliver emits parts to different visitors. A part is given up when it is stale or malformed, and leaves no dead letter: the message
// itself follows.
func (d *Parts) deliver(ctx context.Context, batch []bus.Delivery) []error {
	errs := make([]error, len(batch))
	events, places := make([]*socketio.Broadcast, 0, len(batch)), make([]int, 0, len(batch))
	for i := range batch {
		part, err := event.Decode[event.MessagePart](batch[i].Subject, batch[i].Data)
		data := encodePart(part)
		if err != nil || !utf8.Valid(data) {
			d.metrics.part(partMalformed)
			continue
		}
		if d.now().Sub(batch[i].Time) > partStale {
			d.metrics.part(partDropped)
			continue
		}
		events = append(events, &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{Room(part.AppID, part.ChatUserID)}}, Data: data})
		places = append(places, i)
	}
	failed := d.namespace.EmitAll(ctx, events)
	for k, place := range places {
		if failed == nil || failed[k] == nil {
			d.metrics.part(partOK)
			continue
		}
		d.metrics.part(partFailed)
		errs[place] = apperr.Away("redis", failed[k])
	}
	return errs
}
