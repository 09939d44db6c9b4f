package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// handoverDocument is a [chat.Handover].
type handoverDocument struct {
	By     string    `bson:"by"`
	Reason string    `bson:"reason,omitempty"`
	Note   string    `bson:"note,omitempty"`
	At     time.Time `bson:"at"`
}

func handoverDocumentOf(h chat.Handover) *handoverDocument {
	if h.By == "" {
		return nil
	}
	return &handoverDocument{By: h.By, Reason: h.Reason, Note: h.Note, At: store.UTC(h.At)}
}

func (d *handoverDocument) handover() chat.Handover {
	if d == nil {
		return chat.Handover{}
	}
	return chat.Handover{By: d.By, Reason: d.Reason, Note: d.Note, At: store.UTC(d.At)}
}

// ratingDocument is the latest rating of a chat; the time of the first one is the chat's ratedAt.
type ratingDocument struct {
	Score   int       `bson:"score"`
	Comment string    `bson:"comment,omitempty"`
	At      time.Time `bson:"at"`
}

func (d chatDocument) rating() chat.Rating {
	if d.Rating == nil {
		return chat.Rating{}
	}
	return chat.Rating{
		Score:   d.Rating.Score,
		Comment: d.Rating.Comment,
		FirstAt: store.UTC(d.RatedAt),
		At:      store.UTC(d.Rating.At),
	}
}

// Ratings implements [store.Chats]. It sums in Go, because MongoDB-compatible servers aggregate differently.
func (s *Store) Ratings(ctx context.Context, companyID string, since time.Time, p store.Page) ([]store.Ratings, error) {
	q := listQuery{filter: bson.D{
		{Key: "companyId", Value: companyID}, {Key: "ratedAt", Value: bson.D{{Key: "$gte", Value: store.UTC(since)}}},
	}}
	sums := store.NewRatingSums(p)
	_, err := list(ctx, s, chats, q, func(d chatDocument) (struct{}, bool) {
		sums.Add(d.AppID, d.rating().Score, 1)
		return struct{}{}, false
	})
	return sums.Sorted(), err
}
