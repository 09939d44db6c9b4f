package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

// The documents are [store.BotCallRecord]s. MongoDB removes them at their ExpiresAt.

// AppendBotCall implements [store.BotCalls].
func (s *Store) AppendBotCall(ctx context.Context, c bots.Call) error {
	_, err := s.insert(ctx, botCalls, store.BotCallRecordOf(c))
	return err
}

// BotCalls implements [store.BotCalls].
func (s *Store) BotCalls(ctx context.Context, appID string, p store.Page) ([]bots.Call, error) {
	q := listQuery{
		filter: bson.D{{Key: "appId", Value: appID}},
		sort:   bson.D{desc("_id")},
		limit:  p.Size(),
	}
	if p.After != "" {
		q.filter = append(q.filter, bson.E{Key: "_id", Value: bson.D{{Key: "$lt", Value: p.After}}})
	}
	return list(ctx, s, botCalls, q, func(r store.BotCallRecord) (bots.Call, bool) { return r.BotCall(), true })
}
