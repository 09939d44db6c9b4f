package mongodb_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/transfer"
	testkit "github.com/parley-chat/parley/testkit/engines/mongodb"
	"github.com/parley-chat/parley/testkit/storetest"
)

// A migration from SQLite to MongoDB and back preserves all records.
func TestTransfer(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, e testkit.Engine) {
		sqlite, documents, back := storetest.Open(t), e.Open(t, e.Database(t)), storetest.Open(t)
		storetest.Fill(t, sqlite)
		for _, way := range [][2]store.Store{{sqlite, documents}, {documents, back}} {
			_, err := transfer.Run(t.Context(), transfer.Config{
				From: way[0], To: way[1],
				// so that records that expire in an hour are compared
				Now: func() time.Time { return time.Now().Add(-2 * time.Hour) },
			})
			ok(t, err)
		}
		for _, kind := range store.Kinds() {
			got, want := storetest.Records(t, back, kind), storetest.Records(t, sqlite, kind)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s after the migration back: got %v, want %v", kind, got, want)
			}
		}
	})
}
