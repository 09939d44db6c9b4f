package mongodb

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// messageDocument is a message of a chat's history. Apart from Repeats it is immutable.
type messageDocument struct {
	ID            string    `bson:"_id"`
	ChatID        string    `bson:"chatId"`
	Order         string    `bson:"order"`     // see orderOf; of each side of a chat, one range of the index
	CreatedAt     time.Time `bson:"createdAt"` // in milliseconds, for people: BSON dates have no more
	Type          string    `bson:"type"`
	Text          string    `bson:"text,omitempty"` // for people and search; see textOf
	NameOfSender  string    `bson:"nameOfSender"`
	IsFromSupport bool      `bson:"isFromSupport"`
	Data          string    `bson:"data"`              // JSON text, exactly as sent
	Repeats       int       `bson:"repeats,omitempty"` // number of repeated appends; see AppendMessage
}

func messageDocumentOf(chatID string, m chat.Message) messageDocument {
	return messageDocument{
		ID: m.ID, ChatID: chatID, Order: orderOf(m.CreatedAt, m.ID), CreatedAt: store.UTC(m.CreatedAt), Type: string(m.Type),
		Text: textOf(m.Data), NameOfSender: m.NameOfSender, IsFromSupport: m.IsFromSupport, Data: string(m.Data),
	}
}

func (d messageDocument) message() chat.Message {
	return chat.Message{
		ID: d.ID, CreatedAt: d.enteredAt(), Type: chat.MessageType(d.Type), Data: json.RawMessage(d.Data),
		NameOfSender: d.NameOfSender, IsFromSupport: d.IsFromSupport,
	}
}

// enteredAt returns the time at which the message entered its chat; a projection may lack the order.
func (d messageDocument) enteredAt() time.Time {
	if d.Order == "" {
		return store.UTC(d.CreatedAt)
	}
	return cursorOf(d.Order).At
}

// orderFormat is that of a time in an order.
const orderFormat = "2006-01-02T15:04:05.000000Z"

// orderOf returns the position of a message in its chat's history: time and id as one sortable text. With one field
// the part of a page that a side wrote is one range of the index; two fields would need two ranges.
func orderOf(at time.Time, id string) string {
	return at.UTC().Format(orderFormat) + " " + id
}

// textOf returns the readable part of a message up to the length that the APIs allow. PostgreSQL, the backend of some
// compatible servers, cannot store NUL.
func textOf(data json.RawMessage) string {
	return truncate(strings.ReplaceAll(chat.TextOf(data), "\x00", ""), chat.MaxTextLength)
}

// truncate returns the first n characters of text.
func truncate(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// AppendMessage implements [store.Messages].
//
// The inserted document is authoritative; after that the chat is updated with what the history now contains, so that a
// repeat with other content moves no window, and a repeat after a crash completes the update. If the chat does not
// exist, the message is removed again, unless it was appended again in the meantime (see Repeats), possibly after the
// chat was created.
func (s *Store) AppendMessage(ctx context.Context, chatID string, m chat.Message) error {
	if err := store.CheckMessage(m); err != nil {
		return err
	}
	d := messageDocumentOf(chatID, m)
	if err := s.insertMessage(ctx, &d); err != nil {
		return err
	}
	found, err := s.advanceWindow(ctx, d)
	if err != nil || found {
		return err
	}
	if err := s.removeMessage(ctx, d); err != nil {
		return err
	}
	return apperr.ChatNotFound.New()
}

// insertMessage inserts the message. If it exists, it sets d to the existing one and counts the repeat.
func (s *Store) insertMessage(ctx context.Context, d *messageDocument) error {
	for range attempts {
		if inserted, err := s.insert(ctx, messages, *d); err != nil || inserted {
			return err
		}
		inChat := bson.D{{Key: "_id", Value: d.ID}, {Key: "chatId", Value: d.ChatID}}
		existing, err := modify[messageDocument](
			ctx, s, messages, inChat, bson.D{{Key: "$inc", Value: bson.D{{Key: "repeats", Value: 1}}}},
		)
		if !apperr.Is(err, apperr.NotFound) {
			*d = existing
			return err
		}
		if elsewhere, err := s.hasMessage(ctx, d.ID); err != nil {
			return err
		} else if elsewhere {
			return apperr.MessageExists.New()
		}
	}
	return translate(ctx, "inserting into "+string(messages), errContended)
}

// advanceWindow moves the chat's window for a visitor's message, and reports whether the chat exists.
func (s *Store) advanceWindow(ctx context.Context, d messageDocument) (found bool, err error) {
	if d.IsFromSupport {
		_, err := findOne[bson.D](ctx, s, chats, byID(d.ChatID), "_id")
		if apperr.Is(err, apperr.NotFound) {
			return false, nil
		}
		return err == nil, err
	}
	at := store.UTC(d.CreatedAt)
	return s.update(ctx, chats, d.ChatID, bson.D{{Key: "$max", Value: bson.D{
		{Key: "visitorWroteAt", Value: at}, {Key: "windowStartedAt", Value: at},
	}}})
}

// removeMessage removes the message unless it was repeated since d was read.
func (s *Store) removeMessage(ctx context.Context, d messageDocument) error {
	var repeats any = d.Repeats
	if d.Repeats == 0 {
		repeats = nil // the field is absent
	}
	filter := bson.D{{Key: "_id", Value: d.ID}, {Key: "chatId", Value: d.ChatID}, {Key: "repeats", Value: repeats}}
	return s.do(ctx, "deleting from "+string(messages), func(ctx context.Context) error {
		_, err := s.in(messages).DeleteOne(ctx, filter)
		return err
	})
}

// History implements [store.Messages].
func (s *Store) History(
	ctx context.Context,
	chatID string,
	q store.HistoryQuery,
) (history []chat.Message, more bool, err error) {
	page := listQuery{filter: bothSides(chatID), sort: bson.D{desc("order")}, limit: q.Size() + 1}
	if q.Before != "" {
		cursor, err := s.messageIn(ctx, chatID, q.Before, "order")
		if apperr.Is(err, apperr.NotFound) {
			return nil, false, s.chatOr(ctx, chatID, store.CursorNotInChat())
		}
		if err != nil {
			return nil, false, err
		}
		page.filter = append(page.filter, bson.E{Key: "order", Value: bson.D{{Key: "$lt", Value: cursor.Order}}})
	}
	if history, more, err = s.readHistory(ctx, page, q); err != nil {
		return nil, false, err
	}
	if len(history) == 0 && q.Before == "" {
		return history, false, s.chatOr(ctx, chatID, nil)
	}
	return history, more, nil
}

// bothSides selects a chat's messages. It names the sides, so that the server merges the ranges of an index that has
// the side before the order: what a side wrote is counted there too, without another index that every message would
// pay for.
func bothSides(chatID string) bson.D {
	sides := bson.D{{Key: "$in", Value: bson.A{false, true}}}
	return bson.D{{Key: "chatId", Value: chatID}, {Key: "isFromSupport", Value: sides}}
}

// readHistory reads a page, newest message first, and returns it in the order of the history.
func (s *Store) readHistory(
	ctx context.Context,
	page listQuery,
	q store.HistoryQuery,
) (history []chat.Message, more bool, err error) {
	history = []chat.Message{}
	bytes := 0
	err = s.each(ctx, messages, page, func(cursor *mongo.Cursor) (bool, error) {
		var d messageDocument
		if err := cursor.Decode(&d); err != nil {
			return false, err
		}
		bytes += len(d.Data)
		full := len(history) == q.Size() || q.MaxBytes > 0 && bytes > q.MaxBytes && len(history) > 0
		if full {
			more = true
			return false, nil
		}
		history = append(history, d.message())
		return true, nil
	})
	slices.Reverse(history)
	return history, more, err
}

// chatOr returns err if the chat exists, else NotFound.
func (s *Store) chatOr(ctx context.Context, chatID string, err error) error {
	if _, missing := s.Chat(ctx, chatID); missing != nil {
		return missing
	}
	return err
}

// messageIn reads a message of the chat, or only the given fields of it.
func (s *Store) messageIn(ctx context.Context, chatID, id string, fields ...string) (messageDocument, error) {
	if !store.ValidMessageID(id) {
		return messageDocument{}, apperr.MessageNotFound.New()
	}
	return findOne[messageDocument](
		ctx,
		s,
		messages,
		bson.D{{Key: "_id", Value: id}, {Key: "chatId", Value: chatID}},
		fields...)
}

// FindMessage implements [store.Messages].
func (s *Store) FindMessage(ctx context.Context, id string) (chatID string, m chat.Message, err error) {
	if !store.ValidMessageID(id) {
		return "", chat.Message{}, apperr.MessageNotFound.New()
	}
	d, err := get[messageDocument](ctx, s, messages, id)
	return d.ChatID, d.message(), err
}

// hasMessage reports whether the message is in a history.
func (s *Store) hasMessage(ctx context.Context, id string) (bool, error) {
	if !store.ValidMessageID(id) {
		return false, nil
	}
	_, err := findOne[bson.D](ctx, s, messages, byID(id), "_id")
	if apperr.Is(err, apperr.NotFound) {
		return false, nil
	}
	return err == nil, err
}
