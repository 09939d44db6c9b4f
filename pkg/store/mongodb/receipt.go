package mongodb

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// receiptsDocument holds the messages of a chat with pending reports, and the visitor's read position. It is one
// document: if a message is stored while the visitor reads past it, the later operation sees the earlier.
type receiptsDocument struct {
	ID          string            `bson:"_id"` // chatId
	ReadUpTo    *readDocument     `bson:"readUpTo,omitempty"`
	Undelivered map[string]string `bson:"toDeliver,omitempty"` // message id, see fieldName -> its order, see orderOf
	Unread      map[string]string `bson:"toRead,omitempty"`
	// Awaited is the number of messages in Unread, which has those of Undelivered too: a condition of an update cannot
	// count them. Documents from before the field count from 0.
	Awaited int `bson:"awaited,omitempty"`
}

// readDocument is compared as a whole: by the position of the message, then by when it was read.
type readDocument struct {
	Order string    `bson:"order"` // see orderOf
	At    time.Time `bson:"at"`
}

// readAt returns the time at which the message at a position was read; zero if unread.
func (d receiptsDocument) readAt(order string) time.Time {
	if d.ReadUpTo == nil || d.ReadUpTo.Order < order {
		return time.Time{}
	}
	return store.UTC(d.ReadUpTo.At)
}

// fieldName encodes a message's id as a field name, in which MongoDB reserves three characters. UUIDs are unchanged; an
// external processing layer may use other ids.
func fieldName(id string) string {
	if !strings.ContainsAny(id, "%.$\x00") {
		return id
	}
	return strings.NewReplacer("%", "%25", ".", "%2E", "$", "%24", "\x00", "%00").Replace(id)
}

// idOf is the inverse of fieldName.
func idOf(field string) string {
	if !strings.Contains(field, "%") {
		return field
	}
	return strings.NewReplacer("%25", "%", "%2E", ".", "%24", "$", "%00", "\x00").Replace(field)
}

// AwaitReceipts implements [store.Receipts]. The update, which takes effect only if the message is neither read nor
// waiting yet, needs nothing of the document in its answer.
func (s *Store) AwaitReceipts(
	ctx context.Context,
	chatID string,
	m chat.Message,
	delivered bool,
) (readAt time.Time, err error) {
	field, order := fieldName(m.ID), orderOf(m.CreatedAt, m.ID)
	fresh := receiptsDocument{ID: chatID, Unread: map[string]string{field: order}, Awaited: 1}
	waits := bson.D{{Key: "toRead." + field, Value: order}}
	if !delivered {
		fresh.Undelivered = map[string]string{field: order}
		waits = append(waits, bson.E{Key: "toDeliver." + field, Value: order})
	}
	change := bson.D{{Key: "$set", Value: waits}, addAwaited(1)}
	err = s.alternate(ctx, receipts, fresh, func() (done bool, err error) {
		added, err := s.updateOne(ctx, receipts, awaitable(chatID, field, order), change)
		if err != nil || added {
			return added, err
		}
		d, err := findOne[receiptsDocument](ctx, s, receipts, byID(chatID), "readUpTo", "awaited", "toRead."+field)
		if apperr.Is(err, apperr.NotFound) {
			return false, nil
		}
		readAt = d.readAt(order)
		// None of them: another call has inserted the document since the update, or a message was reported.
		done = !readAt.IsZero() || d.Awaited >= store.MaxAwaited || len(d.Unread) > 0
		return done, err
	})
	return readAt, err
}

// awaitable selects the document of a chat in which a message may begin to wait. A missing field matches $not.
func awaitable(chatID, field, order string) bson.D {
	return append(byID(chatID),
		bson.E{Key: "toRead." + field, Value: bson.D{{Key: "$exists", Value: false}}},
		bson.E{Key: "awaited", Value: notFrom(store.MaxAwaited)},
		bson.E{Key: "readUpTo.order", Value: notFrom(order)},
	)
}

// notFrom matches smaller values, and missing ones.
func notFrom(v any) bson.D {
	return bson.D{{Key: "$not", Value: bson.D{{Key: "$gte", Value: v}}}}
}

func addAwaited(n int) bson.E { return bson.E{Key: "$inc", Value: bson.D{{Key: "awaited", Value: n}}} }

// ReadUpTo implements [store.Receipts].
func (s *Store) ReadUpTo(
	ctx context.Context,
	chatID string,
	m chat.Message,
	at time.Time,
) (unread []string, err error) {
	read := &readDocument{Order: orderOf(m.CreatedAt, m.ID), At: store.UTC(at)}
	change := bson.D{{Key: "$max", Value: bson.D{{Key: "readUpTo", Value: read}}}}
	err = s.updateOrInsert(ctx, receipts, chatID, change, receiptsDocument{ID: chatID, ReadUpTo: read})
	if err != nil {
		return nil, err
	}
	d, err := findOne[receiptsDocument](ctx, s, receipts, byID(chatID), "toRead")
	if err != nil && !apperr.Is(err, apperr.NotFound) { // erased meanwhile
		return nil, err
	}
	for field, order := range d.Unread {
		if order <= read.Order {
			unread = append(unread, idOf(field))
		}
	}
	slices.Sort(unread)
	return unread[:min(len(unread), store.MaxAwaited)], nil
}

// ChatReceipts implements [store.Receipts].
func (s *Store) ChatReceipts(ctx context.Context, chatID string) (found store.ChatReceipts, err error) {
	d, err := findOne[receiptsDocument](ctx, s, receipts, byID(chatID), "readUpTo", "toDeliver")
	if apperr.Is(err, apperr.NotFound) {
		return found, nil
	}
	if d.ReadUpTo != nil {
		found.ReadUpTo = cursorOf(d.ReadUpTo.Order)
	}
	for field := range d.Undelivered {
		found.Undelivered = append(found.Undelivered, idOf(field))
	}
	slices.Sort(found.Undelivered)
	return found, err
}

// cursorOf is the inverse of orderOf.
func cursorOf(order string) chat.ReadCursor {
	at, id, _ := strings.Cut(order, " ")
	t, err := time.Parse(time.RFC3339, at) // an order of before microseconds has milliseconds
	if err != nil {
		return chat.ReadCursor{}
	}
	return chat.ReadCursor{At: t.UTC(), MessageID: id}
}

// NoteReceipt implements [store.Receipts].
func (s *Store) NoteReceipt(ctx context.Context, chatID, messageID string, read bool) error {
	unread, undelivered := "toRead."+fieldName(messageID), "toDeliver."+fieldName(messageID)
	waiting, change := byID(chatID), bson.D{{Key: "$unset", Value: bson.D{{Key: undelivered, Value: ""}}}}
	if read {
		waiting = append(waiting, bson.E{Key: unread, Value: bson.D{{Key: "$exists", Value: true}}}) // or it counts twice
		reported := bson.D{{Key: undelivered, Value: ""}, {Key: unread, Value: ""}}
		change = bson.D{{Key: "$unset", Value: reported}, addAwaited(-1)}
	}
	_, err := s.updateOne(ctx, receipts, waiting, change)
	return err
}
