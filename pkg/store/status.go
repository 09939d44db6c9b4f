package store

import (
	"context"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/chat"
)

// statusDocument is [chat.MessageStatus]. Every field only ever moves to the first of its values ($min), which is what Join
// does. The company is part of the key: what one company's channels report never touches another's messages.
type statusDocument struct {
	ID          string    `bson:"_id"` // {companyId}|{messageId}
	ChatID      string    `bson:"chatId,omitempty"`
	AcceptedAt  time.Time `bson:"acceptedAt,omitempty"`
	StoredAt    time.Time `bson:"storedAt,omitempty"`
	DeliveredAt time.Time `bson:"deliveredAt,omitempty"`
	ReadAt      time.Time `bson:"readAt,omitempty"`
	Failed      string    `bson:"failed,omitempty"` // the time, a blank, the reason: as one text they have one order
}

func statusID(companyID, messageID string) string { return companyID + "|" + messageID }

func (d statusDocument) status() chat.MessageStatus {
	return chat.MessageStatus{
		ChatID: d.ChatID, AcceptedAt: utc(d.AcceptedAt), StoredAt: utc(d.StoredAt),
		DeliveredAt: utc(d.DeliveredAt), ReadAt: utc(d.ReadAt), Failure: parseFailure(d.Failed),
	}
}

func failureText(f chat.Failure) string { return f.At.UTC().Format(chat.TimeFormat) + " " + f.Reason }

func parseFailure(text string) chat.Failure {
	at, reason, _ := strings.Cut(text, " ")
	when, err := time.Parse(chat.TimeFormat, at)
	if err != nil {
		return chat.Failure{}
	}
	return chat.Failure{At: when, Reason: reason}
}

// MessageStatus returns what is known of a company's message; NotFound where that is nothing.
func (s *Store) MessageStatus(ctx context.Context, companyID, messageID string) (chat.MessageStatus, error) {
	d, err := get[statusDocument](ctx, s, statuses, statusID(companyID, messageID))
	return d.status(), err
}

// JoinMessageStatus adds to what is known of a company's message, and returns all that is known then. Adding the same again,
// or in another order, ends the same (see [chat.MessageStatus.Join]).
func (s *Store) JoinMessageStatus(ctx context.Context, companyID, messageID string, more chat.MessageStatus) (chat.MessageStatus, error) {
	var after statusDocument
	err := s.do(ctx, "joining a message's status", func(ctx context.Context) error {
		return again(func() error {
			return s.in(statuses).FindOneAndUpdate(ctx, byID(statusID(companyID, messageID)), joining(more),
				options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&after)
		})
	})
	return after.status(), err
}

// joining is the update that joins more to what is there.
func joining(more chat.MessageStatus) bson.D {
	first := bson.D{}
	for _, f := range []struct {
		name string
		at   time.Time
	}{
		{"acceptedAt", more.AcceptedAt}, {"storedAt", more.StoredAt}, {"deliveredAt", more.DeliveredAt}, {"readAt", more.ReadAt},
	} {
		if !f.at.IsZero() {
			first = append(first, bson.E{Key: f.name, Value: utc(f.at)})
		}
	}
	if !more.Failure.At.IsZero() {
		first = append(first, bson.E{Key: "failed", Value: failureText(more.Failure)})
	}
	var change bson.D
	if len(first) > 0 {
		change = append(change, bson.E{Key: "$min", Value: first})
	}
	if more.ChatID != "" {
		change = append(change, bson.E{Key: "$max", Value: bson.D{{Key: "chatId", Value: more.ChatID}}})
	}
	return change
}
