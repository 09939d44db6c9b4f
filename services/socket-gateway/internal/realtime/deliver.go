package realtime

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

// Event is the event that brings a reply (spec, "Events").
const Event = "message"

const (
	// durable is the consumer that all gateways share. Each of them reads its share of the partitions.
	durable = "socket-gateway"
	// deliverers is how many batches of replies are in hand at once: one is encoded while the other is on its way to Redis.
	deliverers = 2
	// retryPause is the longest pause between tries while Redis is not connected. It is short, because a conversation waits.
	retryPause = 200 * time.Millisecond
)

// Deliverer emits replies into their rooms.
type Deliverer struct {
	namespace *socketio.Namespace
	metrics   *Metrics
	now       func() time.Time
	traced    bool // events carry the spans of their deliveries
}

// consumer reads replies; those of one visitor are emitted one after the other, in stream order, those of several visitors together. A
// reply that could not be emitted is tried again, and left to other gateways when the consumer ends.
func (d *Deliverer) consumer() bus.Consumer {
	return bus.Consumer{
		Stream: subject.Replies, Durable: durable, Positions: true, Concurrency: deliverers, MaxPause: retryPause,
		HandleBatch: d.deliver,
	}
}

// deliver emits replies to different visitors. All gateways, this one too, get them over Redis, so that rooms see one order even while two
// gateways read the same partition. What Redis does not take is tried again until it is back; rooms drop what arrives twice.
func (d *Deliverer) deliver(ctx context.Context, batch []bus.Delivery) []error {
	errs := make([]error, len(batch))
	events, places := make([]*socketio.Broadcast, 0, len(batch)), make([]int, 0, len(batch))
	for i := range batch {
		b, err := d.broadcast(&batch[i])
		if errs[i] = err; b != nil {
			events, places = append(events, b), append(places, i)
		}
	}
	failed := d.namespace.EmitAll(ctx, events)
	for k, place := range places {
		if failed == nil || failed[k] == nil {
			d.metrics.emitted("ok")
			continue
		}
		d.metrics.emitted("failed")
		errs[place] = apperr.Unreachable("redis", failed[k])
	}
	return errs
}

// broadcast encodes a reply for its room. It returns nil for a reply that is older than a conversation lasts: the history shows it, and it
// must not pop up in a page. That happens when positions are lost and the stream is read from its beginning.
func (d *Deliverer) broadcast(delivery *bus.Delivery) (*socketio.Broadcast, error) {
	e, err := event.DecodeReply(delivery.Subject, delivery.Data)
	if err != nil {
		return nil, err
	}
	if d.now().Sub(e.Message.CreatedAt) > chat.Window {
		d.metrics.emitted("stale")
		return nil, nil
	}
	data := encodeReply(&e, delivery.Sequence, len(delivery.Data))
	if !utf8.Valid(data) { // the decoder has checked that it is JSON
		return nil, apperr.New(apperr.Invalid, "MALFORMED_EVENT", "Event is not UTF-8")
	}
	b := &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{Room(e.AppID, e.ChatUserID)}}, Data: data}
	m := metadata.Metadata{Offset: delivery.Sequence, Receipt: receiptOf(&e)}
	if d.traced {
		m.TraceParent = delivery.TraceParent
	}
	m.Put(b)
	return b, nil
}

// receiptOf names the message of a reply whose sender wants a receipt.
func receiptOf(e *event.Reply) metadata.Receipt {
	if !e.Receipt {
		return metadata.Receipt{}
	}
	return metadata.Receipt{MessageID: e.Message.ID, ChatID: e.ChatID}
}
