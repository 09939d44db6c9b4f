package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// fileDocument is a [chat.StoredFile]. MongoDB removes it at ExpiresAt.
type fileDocument struct {
	ID         string    `bson:"_id"`
	CompanyID  string    `bson:"companyId"`
	AppID      string    `bson:"appId"`
	ChatUserID string    `bson:"chatUserId"`
	SenderID   string    `bson:"senderId"`
	Address    string    `bson:"address,omitempty"`
	Size       int64     `bson:"size"` // bytes
	CreatedAt  time.Time `bson:"createdAt"`
	ExpiresAt  time.Time `bson:"expiresAt,omitempty"`
}

func (d fileDocument) file() chat.StoredFile {
	d.CreatedAt = store.UTC(d.CreatedAt)
	d.ExpiresAt = store.UTC(d.ExpiresAt)
	return chat.StoredFile(d)
}

func fileDocumentOf(f chat.StoredFile) fileDocument { return fileDocument(fileDocument(f).file()) }

// PutFile implements [store.Files].
func (s *Store) PutFile(ctx context.Context, f chat.StoredFile) error {
	_, err := s.insert(ctx, files, fileDocumentOf(f))
	return err
}

// DeleteFile implements [store.Files].
func (s *Store) DeleteFile(ctx context.Context, id string) error { return s.delete(ctx, files, id) }

// FileUsage implements [store.Files].
func (s *Store) FileUsage(ctx context.Context, of store.FileOwner, now time.Time) (store.FileUsage, error) {
	switch {
	case of.Sender != "":
		return s.fileUsage(ctx, bson.E{Key: "senderId", Value: of.Sender}, now)
	case of.Address != "":
		return s.fileUsage(ctx, bson.E{Key: "address", Value: of.Address}, now)
	case of.Application != "":
		return s.fileUsage(ctx, bson.E{Key: "appId", Value: of.Application}, now)
	}
	return s.fileUsage(ctx, bson.E{Key: "companyId", Value: of.Company}, now)
}

// fileUsage sums the unexpired files of an owner.
func (s *Store) fileUsage(ctx context.Context, ofOwner bson.E, now time.Time) (store.FileUsage, error) {
	expired := bson.D{{Key: "$lte", Value: store.UTC(now)}}
	notExpired := bson.E{Key: "expiresAt", Value: bson.D{{Key: "$not", Value: expired}}}
	return s.sumSizes(ctx, files, bson.D{ofOwner, notExpired})
}

// sumSizes sums the sizes of the documents that match; an index covers the query. MongoDB counts the documents of each
// size, and the sum is computed here: FerretDB v1 computes only the first of several sums.
func (s *Store) sumSizes(ctx context.Context, in collection, match bson.D) (usage store.FileUsage, err error) {
	count := bson.E{Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}}
	pipeline := mongo.Pipeline{
		{{Key: "$match", Value: match}},
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$size"}, count}}},
	}
	var sizes []struct {
		Size  int64 `bson:"_id"`
		Count int64 `bson:"count"`
	}
	err = s.do(ctx, "adding up "+string(in), func(ctx context.Context) error {
		cursor, err := s.in(in).Aggregate(ctx, pipeline)
		if err != nil {
			return err
		}
		return cursor.All(ctx, &sizes)
	})
	for _, n := range sizes {
		usage.Bytes += n.Size * n.Count
		usage.Count += n.Count
	}
	return usage, err
}

// delete removes the document with that id; a missing one is not an error.
func (s *Store) delete(ctx context.Context, from collection, id string) error {
	return s.do(ctx, "deleting from "+string(from), func(ctx context.Context) error {
		_, err := s.in(from).DeleteOne(ctx, byID(id))
		return err
	})
}
