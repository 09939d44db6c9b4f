package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// statusDocument is [chat.MessageStatus]. Every field only moves to its earliest value ($min), like Join. The company
// is part of the key: reports of one company's channels never affect another's messages.
type statusDocument struct {
	ID          string           `bson:"_id"` // {companyId}|{messageId}
	CompanyID   string           `bson:"companyId"`
	MessageID   string           `bson:"messageId"`
	ChatID      string           `bson:"chatId,omitempty"`
	AcceptedAt  time.Time        `bson:"acceptedAt,omitempty"`
	StoredAt    time.Time        `bson:"storedAt,omitempty"`
	DeliveredAt time.Time        `bson:"deliveredAt,omitempty"`
	ReadAt      time.Time        `bson:"readAt,omitempty"`
	Failure     *failureDocument `bson:"failure,omitempty"`
}

// failureDocument is compared as a whole: by time, then by reason.
type failureDocument struct {
	At     time.Time `bson:"at"`
	Reason string    `bson:"reason"`
}

func statusID(companyID, messageID string) string { return companyID + "|" + messageID }

func statusDocumentOf(companyID, messageID string, m chat.MessageStatus) statusDocument {
	d := statusDocument{
		ID:          statusID(companyID, messageID),
		CompanyID:   companyID,
		MessageID:   messageID,
		ChatID:      m.ChatID,
		AcceptedAt:  store.UTC(m.AcceptedAt),
		StoredAt:    store.UTC(m.StoredAt),
		DeliveredAt: store.UTC(m.DeliveredAt), ReadAt: store.UTC(m.ReadAt),
	}
	if !m.Failure.At.IsZero() {
		d.Failure = &failureDocument{At: store.UTC(m.Failure.At), Reason: m.Failure.Reason}
	}
	return d
}

func (d statusDocument) status() chat.MessageStatus {
	m := chat.MessageStatus{
		ChatID: d.ChatID, AcceptedAt: store.UTC(d.AcceptedAt), StoredAt: store.UTC(d.StoredAt),
		DeliveredAt: store.UTC(d.DeliveredAt), ReadAt: store.UTC(d.ReadAt),
	}
	if d.Failure != nil {
		m.Failure = chat.Failure{At: store.UTC(d.Failure.At), Reason: d.Failure.Reason}
	}
	return m
}

// MessageStatus implements [store.Statuses].
func (s *Store) MessageStatus(ctx context.Context, companyID, messageID string) (chat.MessageStatus, error) {
	d, err := get[statusDocument](ctx, s, statuses, statusID(companyID, messageID))
	return d.status(), err
}

// JoinMessageStatus implements [store.Statuses].
func (s *Store) JoinMessageStatus(
	ctx context.Context,
	companyID, messageID string,
	more chat.MessageStatus,
) (chat.MessageStatus, error) {
	fresh := statusDocumentOf(companyID, messageID, more)
	change := joining(fresh)
	if len(change) == 0 {
		known, err := s.MessageStatus(ctx, companyID, messageID)
		if apperr.Is(err, apperr.NotFound) {
			return chat.MessageStatus{}, nil
		}
		return known, err
	}
	d, err := modifyOrInsert(ctx, s, statuses, fresh.ID, change, fresh)
	return d.status(), err
}

// joining returns the update that joins d to the stored status; empty if d has no values.
func joining(d statusDocument) (change bson.D) {
	first := bson.D{}
	for _, f := range []struct {
		name string
		at   time.Time
	}{
		{"acceptedAt", d.AcceptedAt}, {"storedAt", d.StoredAt}, {"deliveredAt", d.DeliveredAt}, {"readAt", d.ReadAt},
	} {
		if !f.at.IsZero() {
			first = append(first, bson.E{Key: f.name, Value: f.at})
		}
	}
	if d.Failure != nil {
		first = append(first, bson.E{Key: "failure", Value: d.Failure})
	}
	if len(first) > 0 {
		change = append(change, bson.E{Key: "$min", Value: first})
	}
	if d.ChatID != "" {
		change = append(change, bson.E{Key: "$max", Value: bson.D{{Key: "chatId", Value: d.ChatID}}})
	}
	return change
}
