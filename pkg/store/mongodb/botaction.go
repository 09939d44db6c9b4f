package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

// The documents are [store.BotActionRecord]s. MongoDB removes them at their ExpiresAt.

// AddBotAction implements [store.BotActions].
func (s *Store) AddBotAction(ctx context.Context, a bots.Action) (bots.Action, error) {
	r := store.BotActionRecordOf(a)
	inserted, err := s.insert(ctx, botActions, r)
	if err != nil || inserted {
		return r.BotAction(), err
	}
	return s.BotAction(ctx, a.ID)
}

// BotAction implements [store.BotActions].
func (s *Store) BotAction(ctx context.Context, id string) (bots.Action, error) {
	r, err := get[store.BotActionRecord](ctx, s, botActions, id)
	return r.BotAction(), err
}

// MoveBotAction implements [store.BotActions].
func (s *Store) MoveBotAction(ctx context.Context, a bots.Action, from bots.ActionState) error {
	r := store.BotActionRecordOf(a)
	of := append(byID(r.ID), bson.E{Key: "state", Value: from})
	change := bson.D{{Key: "$set", Value: bson.D{{Key: "state", Value: r.State}, {Key: "action", Value: r.Action}}}}
	_, err := modify[store.BotActionRecord](ctx, s, botActions, of, change)
	if apperr.Is(err, apperr.NotFound) {
		err = apperr.ChangedMeanwhile.Wrap(err)
	}
	return err
}
