package mongodb_test

import (
	"path/filepath"
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
		var hashes [2][]transfer.Summary
		for i, way := range [][2]store.Store{{sqlite, documents}, {documents, back}} {
			var err error
			hashes[i], err = transfer.Run(t.Context(), transfer.Config{
				From: way[0], To: way[1], FromName: "from", ToName: "to", Progress: filepath.Join(t.TempDir(), "progress.json"),
				// so that records that expire in an hour are compared
				Now: func() time.Time { return time.Now().Add(-2 * time.Hour) },
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range hashes[0] {
			if hashes[0][i] != hashes[1][i] {
				t.Errorf("got %+v after the migration back, want %+v", hashes[1][i], hashes[0][i])
			}
		}
	})
}
