package parleyctl

import (
	"context"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/store/encrypted"
)

// indexRow is the row of `streams apply` for all indexes of MongoDB.
const indexRow = "MongoDB indexes"

// indexed is a store whose indexes an operator creates. SQLite creates its own.
type indexed interface {
	EnsureIndexes(ctx context.Context) error
	IndexDrift(ctx context.Context) ([]string, error)
}

// applyIndexes creates the missing indexes if MONGODB_URI names a MongoDB, and returns the row to print; nil elsewhere.
func (a *app) applyIndexes(ctx context.Context, dryRun bool, timeout time.Duration) (*appliedView, error) {
	s, err := a.settings()
	if err != nil || s.MongoDBURI == "" {
		return nil, err
	}
	_, err = a.openStore(ctx)
	err = await(ctx, timeout, err, func(ctx context.Context) error { return a.connections.store.Ready(ctx) })
	if err != nil {
		return nil, err
	}
	i, ok := encrypted.Engine(a.connections.store).(indexed)
	if !ok {
		return nil, nil
	}
	drift, err := i.IndexDrift(ctx)
	if err != nil {
		return nil, err
	}
	row := &appliedView{Stream: indexRow, State: streamAsDeclared, indexes: strings.Join(drift, ", ")}
	if len(drift) == 0 {
		return row, nil
	}
	if dryRun {
		row.State = streamDiffers
		return row, nil
	}
	row.State = streamUpdated
	return row, i.EnsureIndexes(ctx)
}
