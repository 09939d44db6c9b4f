package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/parley-chat/parley/pkg/chat"
)

// CountUnread implements [store.Messages]. It reads as many entries of an index as it counts, and no document.
func (s *Store) CountUnread(
	ctx context.Context,
	chatID string,
	fromSupport bool,
	after chat.ReadCursor,
	limit int,
) (n int, err error) {
	filter := bson.D{{Key: "chatId", Value: chatID}, {Key: "isFromSupport", Value: fromSupport}}
	if !after.At.IsZero() {
		filter = append(filter, bson.E{Key: "order", Value: bson.D{{Key: "$gt", Value: orderOf(after.Last())}}})
	}
	inIndex := bson.D{{Key: "_id", Value: 0}, {Key: "order", Value: 1}}
	err = s.each(
		ctx,
		messages,
		listQuery{filter: filter, sort: bson.D{asc("order")}, limit: limit, fields: inIndex},
		func(*mongo.Cursor) (bool, error) {
			n++
			return n < limit, nil
		},
	)
	return n, err
}
