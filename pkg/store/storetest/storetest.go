// Package storetest gives tests a real MongoDB to talk to: the embedded engine, or the server named by MONGODB_URI.
package storetest

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/pkg/store"
)

// Start returns the URI of a running MongoDB that lives as long as the test.
func Start(t testing.TB) string {
	t.Helper()
	if uri := os.Getenv("MONGODB_URI"); uri != "" {
		return uri
	}
	engine, err := embedded.StartMongoDB(embedded.MongoDBConfig{
		Addr: "127.0.0.1:0", Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatalf("starting the embedded MongoDB: %v", err)
	}
	t.Cleanup(engine.Stop)
	return engine.URI()
}

// Open returns a store on a MongoDB of its own, with an empty database that goes when the test ends.
func Open(t testing.TB, change ...func(*store.Config)) *store.Store {
	t.Helper()
	return OpenAt(t, Start(t), DatabaseName(), change...)
}

// DatabaseName returns a name that no other test uses.
func DatabaseName() string { return "test_" + strings.ReplaceAll(uuid.NewString(), "-", "") }

// OpenAt returns a store on the MongoDB at uri. The database is dropped when the test ends.
func OpenAt(t testing.TB, uri, database string, change ...func(*store.Config)) *store.Store {
	t.Helper()
	cfg := store.Config{URI: uri, Database: database, AppName: "storetest", Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	s, err := store.Open(cfg)
	if err != nil {
		t.Fatalf("opening the store: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("closing the store: %v", err)
		}
		if os.Getenv("MONGODB_URI") != "" {
			drop(ctx, t, uri, database)
		}
	})
	return s
}

// drop removes a test's database from a server that outlives the test.
func drop(ctx context.Context, t testing.TB, uri, database string) {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Errorf("dropping %s: %v", database, err)
		return
	}
	defer func() { _ = client.Disconnect(ctx) }()
	if err := client.Database(database).Drop(ctx); err != nil {
		t.Errorf("dropping %s: %v", database, err)
	}
}
