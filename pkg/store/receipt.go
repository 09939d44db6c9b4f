package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// receiptsDocument is a widget chat's list of messages whose sender waits to hear that they were delivered and read, and how
// far the visitor has read. It is one document, so that of a message that is being stored and a visitor who is just reading
// it the second always finds the first.
type receiptsDocument struct {
	ID          string            `bson:"_id"`                // chatId
	ReadUpTo    string            `bson:"readUpTo,omitempty"` // the position of a message, a blank, when that was read
	Undelivered map[string]string `bson:"undelivered"`        // message id -> position
	Unread      map[string]string `bson:"unread"`
}

// position is where a message stands in its chat's history; as texts positions have the history's order.
func position(m chat.Message) string {
	return string(chat.AppendTime(nil, m.CreatedAt)) + " " + m.ID
}

// readAt returns when the message at a position was read; zero: it was not.
func (d receiptsDocument) readAt(position string) time.Time {
	i := strings.LastIndexByte(d.ReadUpTo, ' ')
	if i < 0 || d.ReadUpTo[:i] < position {
		return time.Time{}
	}
	at, err := time.Parse(chat.TimeFormat, d.ReadUpTo[i+1:])
	if err != nil {
		return time.Time{}
	}
	return at
}

// AwaitReceipts notes that the sender of a message waits to hear that it was read, and, unless that is known, delivered. It
// returns when the visitor had already read that far; then, and only then, the time is not zero.
func (s *Store) AwaitReceipts(ctx context.Context, chatID string, m chat.Message, delivered bool) (readAt time.Time, err error) {
	where := position(m)
	awaited := bson.D{{Key: "unread." + fieldName(m.ID), Value: where}}
	if !delivered {
		awaited = append(awaited, bson.E{Key: "undelivered." + fieldName(m.ID), Value: where})
	}
	d, err := s.updateReceipts(ctx, chatID, bson.D{{Key: "$set", Value: awaited}})
	return d.readAt(where), err
}

// ReadUpTo notes that the visitor has read everything up to m, and returns the ids of the messages up to there whose senders
// still wait to hear that, sorted. They are returned again until [Store.NoteReceipt].
func (s *Store) ReadUpTo(ctx context.Context, chatID string, m chat.Message, at time.Time) (unread []string, err error) {
	where := position(m)
	upTo := where + " " + string(chat.AppendTime(nil, at))
	d, err := s.updateReceipts(ctx, chatID, bson.D{{Key: "$max", Value: bson.D{{Key: "readUpTo", Value: upTo}}}})
	if err != nil {
		return nil, err
	}
	for _, p := range d.Unread {
		if p <= where {
			unread = append(unread, idAt(p))
		}
	}
	slices.Sort(unread)
	return unread, nil
}

// Undelivered returns the ids of the chat's messages whose senders wait to hear that they were delivered, sorted.
func (s *Store) Undelivered(ctx context.Context, chatID string) (ids []string, err error) {
	d, err := get[receiptsDocument](ctx, s, receipts, chatID)
	if apperr.Is(err, apperr.NotFound) {
		return nil, nil
	}
	for _, p := range d.Undelivered {
		ids = append(ids, idAt(p))
	}
	slices.Sort(ids)
	return ids, err
}

// idAt returns the id of the message at a position.
func idAt(position string) string {
	_, id, _ := strings.Cut(position, " ")
	return id
}

// NoteReceipt notes that a message's sender has heard that it was delivered, or read, which implies that.
func (s *Store) NoteReceipt(ctx context.Context, chatID, messageID string, read bool) error {
	heard := bson.D{{Key: "undelivered." + fieldName(messageID), Value: ""}}
	if read {
		heard = append(heard, bson.E{Key: "unread." + fieldName(messageID), Value: ""})
	}
	_, err := s.update(ctx, receipts, chatID, bson.D{{Key: "$unset", Value: heard}})
	return err
}

func (s *Store) updateReceipts(ctx context.Context, chatID string, change bson.D) (after receiptsDocument, err error) {
	err = s.do(ctx, "noting receipts", func(ctx context.Context) error {
		return again(func() error {
			return s.in(receipts).FindOneAndUpdate(ctx, byID(chatID), change,
				options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&after)
		})
	})
	return after, err
}
