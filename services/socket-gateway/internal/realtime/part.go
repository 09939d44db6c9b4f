package realtime

// Parts of messages that bots are still writing. They take the way of replies (publish.go, room.go), but have no
// offset: the complete message replaces them.

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

// eventPart is the name of the event for a part of a message that a bot is still writing. Its argument is an
// object: clients store a trailing string as the offset of connection state recovery, and must keep that of
// the last reply.
const eventPart = "message.part"

// partStale is the age after which a part is dropped: bots abort a message after 30 seconds without a part.
const partStale = 35 * time.Second

const partHead = `["` + eventPart + `",`

// encodePart returns the JSON array of the event's name and argument.
func encodePart(p event.MessagePart) []byte {
	dst := append(make([]byte, 0, len(partHead)+len(p.Text)+256), partHead...)
	return append(p.AppendShown(dst), ']')
}

// partPublisher publishes parts of messages to all gateways. It is safe for concurrent use.
type partPublisher struct {
	namespace *socketio.Namespace
	metrics   *Metrics
	now       func() time.Time
}

// consumer returns the consumer of parts, configured like that of the replyPublisher.
func (p *partPublisher) consumer() bus.Consumer {
	return bus.Consumer{
		Stream:      subject.Parts,
		Durable:     consumerGroup,
		Offsets:     true,
		Concurrency: concurrentBatches,
		MaxPause:    retryPause,
		HandleBatch: p.publish,
	}
}

// publish publishes a batch of parts to different visitors. Stale and malformed parts are dropped without a
// dead letter: the complete message follows.
func (p *partPublisher) publish(ctx context.Context, batch []bus.Delivery) []error {
	return publishBatch(ctx, p.namespace, batch, p.encodeBroadcast, p.metrics.part)
}

// encodeBroadcast encodes a part for its room. It returns nil for a malformed or stale part.
func (p *partPublisher) encodeBroadcast(delivery *bus.Delivery) (*socketio.Broadcast, error) {
	part, data := decodePart(delivery)
	if data == nil {
		p.metrics.part(partMalformed)
		return nil, nil
	}
	if p.now().Sub(delivery.Time) > partStale {
		p.metrics.part(partDropped)
		return nil, nil
	}
	b := toRoom(Room(part.AppID, part.ChatUserID), data)
	m := metadata.Metadata{Part: metadata.Part{MessageID: part.MessageID, N: part.N}}
	m.Put(b)
	return b, nil
}

// decodePart returns the part of a delivery and how clients receive it; nil for a malformed one.
func decodePart(delivery *bus.Delivery) (event.MessagePart, []byte) {
	part, err := event.Decode[event.MessagePart](delivery.Subject, delivery.Data)
	if err != nil {
		return part, nil
	}
	data := encodePart(part)
	if !utf8.Valid(data) {
		return part, nil
	}
	return part, data
}

// roomParts tracks the parts emitted to a room. room.mu guards it.
type roomParts struct {
	last     metadata.Part
	replayed []replayedPart // sockets that received later parts when they joined
}

// replayedPart is a socket that has received the parts up to mark in a snapshot.
type replayedPart struct {
	socket string
	mark   metadata.Part
}

// markPartsReplayed suppresses the parts up to mark for a socket that has received them in a snapshot.
func (r *rooms) markPartsReplayed(name, socket string, mark metadata.Part) {
	rm := r.find(name)
	if rm == nil {
		return
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if !rm.parts.last.Covers(mark) {
		rm.parts.replayed = append(rm.parts.replayed, replayedPart{socket, mark})
	}
}

// handlePart emits a part to its room and drops it if the room has received it.
func (r *rooms) handlePart(b *socketio.Broadcast, mark metadata.Part) int {
	rm := r.find(b.Rooms[0])
	if rm == nil { // not hosted here; a socket that joins later receives a snapshot
		return 0
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if rm.parts.last.Covers(mark) {
		r.metrics.dropped(dropRepeated)
		return 0
	}
	rm.parts.last = mark
	rm.parts.replayed = slices.DeleteFunc(rm.parts.replayed, func(s replayedPart) bool { return !s.mark.Covers(mark) })
	for _, s := range rm.parts.replayed {
		b.Except = append(b.Except, s.socket)
	}
	return r.sockets.EmitLocal(b)
}
