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
	ID          string               `bson:"_id"` // chatId
	ReadUpTo    *readDocument        `bson:"readUpTo,omitempty"`
	Undelivered map[string]time.Time `bson:"undelivered,omitempty"` // message id, see fieldName -> its creation time
	Unread      map[string]time.Time `bson:"unread,omitempty"`
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

// AwaitReceipts implements [store.Receipts].
func (s *Store) AwaitReceipts(
	ctx context.Context,
	chatID string,
	m chat.Message,
	delivered bool,
) (readAt time.Time, err error) {
	field, at := fieldName(m.ID), store.UTC(m.CreatedAt)
	fresh := receiptsDocument{ID: chatID, Unread: map[string]time.Time{field: at}}
	change := bson.D{{Key: "unread." + field, Value: at}}
	if !delivered {
		fresh.Undelivered = map[string]time.Time{field: at}
		change = append(change, bson.E{Key: "undelivered." + field, Value: at})
	}
	d, err := modifyOrInsert(ctx, s, receipts, chatID, bson.D{{Key: "$set", Value: change}}, fresh)
	return d.readAt(orderOf(m.CreatedAt, m.ID)), err
}

// ReadUpTo implements [store.Receipts].
func (s *Store) ReadUpTo(
	ctx context.Context,
	chatID string,
	m chat.Message,
	at time.Time,
) (unread []string, err error) {
	read := &readDocument{Order: orderOf(m.CreatedAt, m.ID), At: store.UTC(at)}
	d, err := modifyOrInsert(ctx, s, receipts, chatID,
		bson.D{{Key: "$max", Value: bson.D{{Key: "readUpTo", Value: read}}}}, receiptsDocument{ID: chatID, ReadUpTo: read})
	if err != nil {
		return nil, err
	}
	for field, created := range d.Unread {
		if id := idOf(field); orderOf(created, id) <= read.Order {
			unread = append(unread, id)
		}
	}
	slices.Sort(unread)
	return unread, nil
}

// ChatReceipts implements [store.Receipts].
func (s *Store) ChatReceipts(ctx context.Context, chatID string) (found store.ChatReceipts, err error) {
	d, err := get[receiptsDocument](ctx, s, receipts, chatID)
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
	t, err := time.Parse(chat.TimeFormat, at)
	if err != nil {
		return chat.ReadCursor{}
	}
	return chat.ReadCursor{At: t.UTC(), MessageID: id}
}

// NoteReceipt implements [store.Receipts].
func (s *Store) NoteReceipt(ctx context.Context, chatID, messageID string, read bool) error {
	reported := bson.D{{Key: "undelivered." + fieldName(messageID), Value: ""}}
	if read {
		reported = append(reported, bson.E{Key: "unread." + fieldName(messageID), Value: ""})
	}
	_, err := s.update(ctx, receipts, chatID, bson.D{{Key: "$unset", Value: reported}})
	return err
}
