package realtime

import (
	"context"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

// The first half of a reply's way: Read reads batches from the stream, publish encodes them and publishes
// them to all gateways over Redis. The second half, from Redis to the sockets, is room.go.

// eventMessage is the name of the event for a reply (spec, "Events").
const eventMessage = "message"

const (
	// consumerGroup is the group that all gateways form ([bus.Consumer.Offsets]): each reads a share of the
	// partitions, through an ephemeral consumer of its own, and saves their offsets under this name.
	consumerGroup = "socket-gateway"
	// concurrentBatches is two: one batch is encoded while the other is sent to Redis.
	concurrentBatches = 2
	// retryPause is the maximum pause between retries while Redis is not connected. It is short because
	// visitors are waiting.
	retryPause = 200 * time.Millisecond
)

// Read reads replies and parts from their streams and publishes them until ctx is done. It returns when none
// is in progress; other gateways take over.
func (g *Gateway) Read(ctx context.Context) error {
	group, reading := errgroup.WithContext(ctx)
	group.Go(func() error { return g.cfg.Bus.Consume(reading, g.replies.consumer()) })
	group.Go(func() error { return g.cfg.Bus.Consume(reading, g.parts.consumer()) })
	return group.Wait()
}

// replyPublisher publishes replies to all gateways. It is safe for concurrent use.
type replyPublisher struct {
	namespace *socketio.Namespace
	metrics   *Metrics
	now       func() time.Time
	traced    bool // events carry the spans of their deliveries
}

// consumer returns the consumer of replies. Replies to one visitor are published one at a time in stream
// order, those to different visitors in batches. A reply that cannot be published is retried, by another
// gateway if this consumer ends.
func (p *replyPublisher) consumer() bus.Consumer {
	return bus.Consumer{
		Stream:      subject.Replies,
		Durable:     consumerGroup,
		Offsets:     true,
		Concurrency: concurrentBatches,
		MaxPause:    retryPause,
		HandleBatch: p.publish,
	}
}

// publish publishes a batch of replies to different visitors. All gateways, including this one, receive them
// over Redis, so that rooms see one order even while two gateways read the same partition. Failed publishes
// are retried until Redis is connected; rooms drop duplicates.
func (p *replyPublisher) publish(ctx context.Context, batch []bus.Delivery) []error {
	return publishBatch(ctx, p.namespace, batch, p.encodeBroadcast, p.metrics.published)
}

// publishBatch publishes the broadcasts of a batch to all gateways. encode returns the broadcast of a delivery, nil
// for one that no client gets. Each broadcast is counted as publishOK or publishFailed. The errors are those of the
// deliveries, by their index.
func publishBatch(
	ctx context.Context,
	namespace *socketio.Namespace,
	batch []bus.Delivery,
	encode func(*bus.Delivery) (*socketio.Broadcast, error),
	count func(result string),
) []error {
	errs := make([]error, len(batch))
	broadcasts := make([]*socketio.Broadcast, 0, len(batch))
	indexes := make([]int, 0, len(batch)) // of the broadcasts in batch
	for i := range batch {
		b, err := encode(&batch[i])
		errs[i] = err
		if b != nil {
			broadcasts = append(broadcasts, b)
			indexes = append(indexes, i)
		}
	}
	failed := namespace.EmitAll(ctx, broadcasts)
	for k, i := range indexes {
		if failed == nil || failed[k] == nil {
			count(publishOK)
			continue
		}
		count(publishFailed)
		errs[i] = apperr.Unreachable("redis", failed[k])
	}
	return errs
}

// encodeBroadcast encodes a reply for its room. It returns nil for a reply older than chat.Window, which must not
// pop up in a page; the history has it. Such replies occur when offsets are lost and the stream is read
// from its beginning.
func (p *replyPublisher) encodeBroadcast(delivery *bus.Delivery) (*socketio.Broadcast, error) {
	e, err := event.DecodeReply(delivery.Subject, delivery.Data, delivery.Time)
	if err != nil {
		return nil, err
	}
	if p.now().Sub(e.Message.CreatedAt) > chat.Window {
		p.metrics.published(publishStale)
		return nil, nil
	}
	data := encodeReply(&e, delivery.Place(), len(delivery.Data))
	if !utf8.Valid(data) { // the decoder has validated the JSON
		return nil, apperr.New(apperr.Invalid, "MALFORMED_EVENT", "Event is not UTF-8")
	}
	m := metadata.Metadata{Offset: delivery.Sequence, Receipt: receiptOf(&e)}
	if p.traced {
		m.TraceParent = delivery.TraceParent
	}
	b := toRoom(Room(e.AppID, e.ChatUserID), data)
	m.Put(b)
	return b, nil
}

// toRoom returns the broadcast of an encoded event to one room.
func toRoom(room string, data []byte) *socketio.Broadcast {
	return &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{room}}, Data: data}
}

// receiptOf returns the requested receipt of a reply, or the zero value.
func receiptOf(e *event.Reply) metadata.Receipt {
	if !e.Receipt {
		return metadata.Receipt{}
	}
	return metadata.Receipt{MessageID: e.Message.ID, ChatID: e.ChatID}
}
