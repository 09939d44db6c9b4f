package embedded_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/parley-chat/parley/pkg/embedded"
)

func startMongoDB(t *testing.T, addr, dir string, log *slog.Logger) *embedded.MongoDB {
	t.Helper()
	m, err := embedded.StartMongoDB(embedded.MongoDBConfig{Addr: addr, Dir: dir, Logger: log})
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	t.Cleanup(m.Stop)
	return m
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func connectMongoDB(t *testing.T, uri string) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	return client.Database("test")
}

// counters are the ways in which the store counts; each loses updates on the bare engine.
func counters() map[string]func(ctx context.Context, c *mongo.Collection) error {
	byID, increment := bson.D{{Key: "_id", Value: "one"}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}
	return map[string]func(context.Context, *mongo.Collection) error{
		"update": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.UpdateOne(ctx, byID, increment, options.UpdateOne().SetUpsert(true))
			return err
		},
		"findAndModify": func(ctx context.Context, c *mongo.Collection) error {
			return c.FindOneAndUpdate(ctx, byID, increment,
				options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Err()
		},
	}
}

func TestMongoDBUpdatesAreAtomic(t *testing.T) {
	t.Parallel()
	for name, count := range counters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connectMongoDB(t, startMongoDB(t, "127.0.0.1:0", t.TempDir(), quiet()).URI()).Collection("counters")
			const goroutines, each = 64, 10
			var all sync.WaitGroup
			for range goroutines {
				all.Go(func() {
					for range each {
						if err := count(t.Context(), c); err != nil {
							t.Errorf("counting: %v", err)
						}
					}
				})
			}
			all.Wait()
			wantCount(t, c, goroutines*each)
		})
	}
}

func wantCount(t *testing.T, c *mongo.Collection, want int) {
	t.Helper()
	var got struct{ N int }
	if err := c.FindOne(t.Context(), bson.D{{Key: "_id", Value: "one"}}).Decode(&got); err != nil || got.N != want {
		t.Errorf("got %d, %v, want %d", got.N, err, want)
	}
}

// TestMongoDBUnacknowledgedWrites counts with writes whose reply nobody waits for.
func TestMongoDBUnacknowledgedWrites(t *testing.T) {
	t.Parallel()
	db := connectMongoDB(t, startMongoDB(t, "127.0.0.1:0", t.TempDir(), quiet()).URI())
	silent := db.Collection("counters", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	c := db.Collection("counters")
	const want = 200
	for range want - 1 {
		_, err := silent.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "one"}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, options.UpdateOne().SetUpsert(true))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := counters()["update"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		var got struct{ N int }
		if err := c.FindOne(t.Context(), bson.D{{Key: "_id", Value: "one"}}).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got.N == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d, want %d", got.N, want)
		}
	}
}

func TestMongoDBLargeDocuments(t *testing.T) {
	t.Parallel()
	c := connectMongoDB(t, startMongoDB(t, "127.0.0.1:0", t.TempDir(), quiet()).URI()).Collection("large")
	want := strings.Repeat("ä", 7<<20) // 14 MiB of the 16 that MongoDB takes
	if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "one"}, {Key: "text", Value: want}}); err != nil {
		t.Fatal(err)
	}
	var got struct{ Text string }
	if err := c.FindOne(t.Context(), bson.D{{Key: "_id", Value: "one"}}).Decode(&got); err != nil || got.Text != want {
		t.Fatalf("got %d bytes, %v, want %d", len(got.Text), err, len(want))
	}
}

// TestMongoDBStopsInTrafficAndKeepsWhatItAcknowledged stops the engine under writes, and starts it on the same address and folder.
func TestMongoDBStopsInTrafficAndKeepsWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not yet there", "with blanks & 100%")
	m := startMongoDB(t, "127.0.0.1:0", dir, quiet())
	addr := m.Addr()
	c := connectMongoDB(t, m.URI()+"&serverSelectionTimeoutMS=100").Collection("kept")
	kept := make(chan int, 10_000)
	var writer sync.WaitGroup
	halfway := make(chan struct{})
	writer.Go(func() {
		defer close(kept)
		for n := range cap(kept) {
			if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: n}}); err != nil {
				return
			}
			kept <- n
			if n == 50 {
				close(halfway)
			}
		}
	})
	<-halfway
	m.Stop()
	m.Stop() // twice is once
	writer.Wait()
	if len(kept) == cap(kept) {
		t.Fatal("the writer never noticed the stop")
	}

	again := startMongoDB(t, addr, dir, quiet())
	if again.Addr() != addr {
		t.Fatalf("got the address %s, want %s", again.Addr(), addr)
	}
	found, err := connectMongoDB(t, again.URI()).Collection("kept").CountDocuments(t.Context(), bson.D{})
	if err != nil || int(found) < len(kept) {
		t.Fatalf("got %d documents, %v, want the %d that were acknowledged", found, err, len(kept))
	}
}

// TestMongoDBIsQuiet hears nothing of connections and requests, and of warnings in our own logger.
func TestMongoDBIsQuiet(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	m := startMongoDB(t, "127.0.0.1:0", t.TempDir(), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	db := connectMongoDB(t, m.URI())
	if err := counters()["update"](t.Context(), db.Collection("c")); err != nil {
		t.Fatal(err)
	}
	if said := log.String(); said != "" {
		t.Errorf("got %q, want silence", said)
	}
	if err := db.RunCommand(t.Context(), bson.D{{Key: "frobnicate", Value: 1}}).Err(); err == nil {
		t.Fatal("got no error for a command nobody knows")
	}
	m.Stop()
	if said := log.String(); !strings.Contains(said, "frobnicate") {
		t.Errorf("got %q, want a warning of the command", said)
	}
}

func TestMongoDBRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	first := startMongoDB(t, "127.0.0.1:0", t.TempDir(), quiet())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for why, c := range map[string]embedded.MongoDBConfig{
		"an address that is taken": {Addr: first.Addr(), Dir: t.TempDir(), Logger: quiet()},
		"an address that is none":  {Addr: "nowhere:nothing", Dir: t.TempDir(), Logger: quiet()},
		"a folder that is a file":  {Addr: "127.0.0.1:0", Dir: file, Logger: quiet()},
	} {
		if m, err := embedded.StartMongoDB(c); err == nil {
			m.Stop()
			t.Errorf("%s: got no error", why)
		}
	}
}

// lockedBuffer is a log that a test can read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
