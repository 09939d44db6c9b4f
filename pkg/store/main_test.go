package store_test

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openRaw returns a store and, for the look behind it, its database through the bare driver.
func openRaw(t testing.TB) (*store.Store, rawDatabase) {
	t.Helper()
	uri := storetest.Start(t)
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	name := storetest.DatabaseName()
	return storetest.OpenAt(t, uri, name), client.Database(name)
}

// at counts milliseconds from a moment of the tests' own.
func at(milliseconds int) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond)
}

// rawDatabase is a store's database as the bare driver sees it.
type rawDatabase = *mongo.Database
