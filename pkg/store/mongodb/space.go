package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FreeSpace returns the free bytes of the file system that holds the database, and its size. Servers that do
// not report them return zeros.
func (s *Store) FreeSpace(ctx context.Context) (free, size uint64, err error) {
	var stats struct {
		Used  float64 `bson:"fsUsedSize"`
		Total float64 `bson:"fsTotalSize"`
	}
	err = s.do(ctx, "reading the statistics of the database", func(ctx context.Context) error {
		return s.database.RunCommand(ctx, bson.D{{Key: "dbStats", Value: 1}}).Decode(&stats)
	})
	return uint64(max(stats.Total-stats.Used, 0)), uint64(stats.Total), err
}
