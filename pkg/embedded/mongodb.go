package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/FerretDB/FerretDB/ferretdb"

	"github.com/parley-chat/parley/pkg/embedded/internal/writegate"
)

// MongoDBConfig says where the embedded MongoDB listens and keeps its data.
type MongoDBConfig struct {
	Addr   string // for example 127.0.0.1:0
	Dir    string // the data; made when it is not there
	Logger *slog.Logger
}

// MongoDB is a document database that speaks MongoDB's wire protocol: FerretDB on SQLite, behind a proxy that gives it
// MongoDB's atomicity per document (see package writegate).
type MongoDB struct {
	gate *writegate.Gate
	stop context.CancelFunc
	done chan struct{} // closed when the engine is gone
}

// StartMongoDB starts the engine and returns when it takes connections.
func StartMongoDB(c MongoDBConfig) (*MongoDB, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the embedded MongoDB: %w", err)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of the embedded MongoDB: %w", err)
	}
	engine, err := newEngine(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Logger:    slog.New(warningsOnly{c.Logger.Handler()}),
		Handler:   "sqlite",
		SQLiteURL: sqliteURL(dir),
	})
	if err != nil {
		return nil, fmt.Errorf("starting the embedded MongoDB: %w", err)
	}
	indexes := newIDIndexes(dir, c.Logger)
	indexes.addToAll()
	return runMongoDB(engine, c.Addr, indexes)
}

func newEngine(c *ferretdb.Config) (*ferretdb.FerretDB, error) {
	starting.Lock()
	defer starting.Unlock()
	return ferretdb.New(c)
}

// runMongoDB lets the engine run on its private port and opens the gate in front of it.
func runMongoDB(engine *ferretdb.FerretDB, addr string, indexes *idIndexes) (*MongoDB, error) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &MongoDB{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		_ = engine.Run(ctx) // it returns nil, and only when ctx is done
	}()
	private, err := url.Parse(engine.MongoDBURI())
	if err == nil {
		m.gate, err = writegate.Open(addr, private.Host, indexes.wrote)
	}
	if err != nil {
		m.Stop()
		return nil, fmt.Errorf("listening for the embedded MongoDB: %w", err)
	}
	return m, nil
}

// sqliteURL names the folder of the database files. With the write-ahead log, synchronous(1) loses nothing when the process
// dies, and at most the last moments when the machine does, as JetStream's files beside it; in return a write does not wait
// for the disk, under the gate's lock.
func sqliteURL(dir string) string {
	u := url.URL{Scheme: "file", Path: dir + "/", RawQuery: url.Values{"_pragma": {"synchronous(1)"}}.Encode()}
	return u.String()
}

// Addr is where the engine listens: host and port.
func (m *MongoDB) Addr() string { return m.gate.Addr() }

// URI is what a MongoDB driver connects to. The engine has neither sessions nor a replica set, so writes are not retried by
// the driver.
func (m *MongoDB) URI() string {
	return "mongodb://" + m.Addr() + "/?directConnection=true&retryWrites=false"
}

// Stop lets the operations that are under way finish, ends all connections and the engine, and returns when the data is
// closed. It is safe to call twice.
func (m *MongoDB) Stop() {
	if m.gate != nil {
		m.gate.Close()
	}
	m.stop()
	<-m.done
}

// warningsOnly quiets the engine, which tells of every connection and request.
type warningsOnly struct{ slog.Handler }

func (h warningsOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warningsOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warningsOnly{h.Handler.WithAttrs(attrs)}
}

func (h warningsOnly) WithGroup(name string) slog.Handler {
	return warningsOnly{h.Handler.WithGroup(name)}
}
