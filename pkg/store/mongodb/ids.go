package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/store"
)

// IDs implements [store.Store]. It reads an index and no documents.
func (s *Store) IDs(ctx context.Context, of store.IDFilter, p store.Page) ([]string, error) {
	from, owner := files, bson.E{Key: "chatUserId", Value: of.FilesOf}
	switch {
	case of.ApplicationsOf != "":
		from, owner = applications, bson.E{Key: "companyId", Value: of.ApplicationsOf}
	case of.TemplatesOf != "":
		from, owner = templates, bson.E{Key: "companyId", Value: of.TemplatesOf}
	}
	q := byIDs(p)
	q.filter = append(bson.D{owner}, q.filter...)
	q.fields = bson.D{{Key: "_id", Value: 1}}
	type document struct {
		ID string `bson:"_id"`
	}
	return list(ctx, s, from, q, func(d document) (string, bool) { return d.ID, true })
}
