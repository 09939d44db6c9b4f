package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

// The documents are [store.BotUsageRecord]s. MongoDB removes them at their ExpiresAt.

// SpendBot implements [store.BotUsage]. Each of its writes is atomic: the update, whose filter has the bound, and the
// insert of the day's first amount. If neither takes effect, the amount is above the bound, or another caller
// changed the counts in between: then the next round finds them.
func (s *Store) SpendBot(
	ctx context.Context,
	of bots.UsageOf,
	add, bound bots.Amount,
) (bots.Amount, bool, error) {
	first := store.BotUsageRecordOf(of, add)
	within := append(byID(first.ID), leavesRoom(add, bound)...)
	change := bson.D{{Key: "$inc", Value: bson.D{
		{Key: "questions", Value: first.Questions},
		{Key: "tokens", Value: first.Tokens},
	}}}
	for range attempts {
		d, err := modify[store.BotUsageRecord](ctx, s, botUsage, within, change)
		if !apperr.Is(err, apperr.NotFound) {
			return d.Amount(), err == nil, err
		}
		if add.Within(bound) {
			inserted, err := s.insert(ctx, botUsage, first)
			if err != nil {
				return bots.Amount{}, false, err
			}
			if inserted {
				return add, true, nil
			}
		}
		d, err = get[store.BotUsageRecord](ctx, s, botUsage, first.ID)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return bots.Amount{}, false, err
		}
		if used := d.Amount(); !used.Add(add).Within(bound) {
			return used, false, nil
		}
	}
	return bots.Amount{}, false, translate(ctx, "updating "+string(botUsage), errContended)
}

// leavesRoom selects counts that are within the bound after the addition.
func leavesRoom(add, bound bots.Amount) (filter bson.D) {
	for _, of := range []struct {
		field      string
		add, bound int
	}{
		{"questions", add.Questions, bound.Questions},
		{"tokens", add.Tokens, bound.Tokens},
	} {
		if of.bound != 0 {
			most := int64(of.bound) - int64(of.add)
			filter = append(filter, bson.E{Key: of.field, Value: bson.D{{Key: "$lte", Value: most}}})
		}
	}
	return filter
}

// BotUsage implements [store.BotUsage].
func (s *Store) BotUsage(ctx context.Context, appID string, since time.Time) ([]bots.Usage, error) {
	q := listQuery{
		filter: bson.D{
			{Key: "chatUserId", Value: ""},
			{Key: "appId", Value: appID},
			{Key: "day", Value: bson.D{{Key: "$gte", Value: bots.Day(since)}}},
		},
		sort: bson.D{asc("day")},
	}
	return list(ctx, s, botUsage, q, func(r store.BotUsageRecord) (bots.Usage, bool) { return r.Usage(), true })
}
