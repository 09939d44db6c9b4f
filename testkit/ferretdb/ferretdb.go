// Package ferretdb runs FerretDB v1, a server with MongoDB's wire protocol on SQLite or PostgreSQL, inside the test's process. The
// real driver talks to it over a real socket.
//
// FerretDB v1 reads a document, changes it and writes it back without a lock: concurrent updates of one document lose some of
// them. [Serialize] is the remedy for clients of one process.
package ferretdb

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/FerretDB/FerretDB/ferretdb"
	"go.mongodb.org/mongo-driver/v2/event"
)

// Config says where the server listens and keeps its data: exactly one of Dir and PostgreSQLURL.
type Config struct {
	Addr          string // host:port; default 127.0.0.1:0
	Dir           string // of SQLite's files; it is created
	PostgreSQLURL string // of a database that exists
	Logger        *slog.Logger
}

// Server is a running FerretDB.
type Server struct {
	uri  string
	stop context.CancelFunc
	done chan struct{} // closed when the server has stopped
}

// starting admits one FerretDB at a time: its New writes variables of its own package.
var starting sync.Mutex

// Start starts a server and returns when it accepts connections.
func Start(c Config) (*Server, error) {
	engine := &ferretdb.Config{
		Listener: ferretdb.ListenerConfig{TCP: c.Addr},
		Logger:   slog.New(warningsOnly{c.Logger.Handler()}),
		Handler:  "postgresql", PostgreSQLURL: c.PostgreSQLURL,
	}
	if c.Addr == "" {
		engine.Listener.TCP = "127.0.0.1:0"
	}
	if c.Dir != "" {
		dir, err := filepath.Abs(c.Dir)
		if err != nil {
			return nil, fmt.Errorf("finding FerretDB's folder: %w", err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("creating FerretDB's folder: %w", err)
		}
		u := url.URL{Scheme: "file", Path: dir + "/", RawQuery: url.Values{"_pragma": {"synchronous(0)"}}.Encode()}
		engine.Handler, engine.SQLiteURL = "sqlite", u.String()
	}
	starting.Lock()
	defer starting.Unlock()
	f, err := ferretdb.New(engine)
	if err != nil {
		return nil, fmt.Errorf("starting FerretDB: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{stop: cancel, done: make(chan struct{}), uri: f.MongoDBURI() + "?directConnection=true&retryWrites=false"}
	go func() {
		defer close(s.done)
		_ = f.Run(ctx) // it returns nil, and only when ctx is done
	}()
	return s, nil
}

// URI is what a MongoDB driver connects to. FerretDB has neither sessions nor a replica set, so the driver retries no writes.
func (s *Server) URI() string { return s.uri }

// Addr is where the server listens.
func (s *Server) Addr() string {
	u, err := url.Parse(s.uri)
	if err != nil {
		panic("ferretdb: its own URI: " + err.Error())
	}
	return u.Host
}

// Stop ends all connections and returns when the data is closed. It is safe to call twice.
func (s *Server) Stop() {
	s.stop()
	<-s.done
}

// Serialize returns a monitor for clients: the write commands of all clients that share it run one at a time.
func Serialize() *event.CommandMonitor {
	var running sync.Mutex
	unlock := func(command string) {
		if writes(command) {
			running.Unlock()
		}
	}
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if writes(e.CommandName) {
				running.Lock()
			}
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) { unlock(e.CommandName) },
		Failed:    func(_ context.Context, e *event.CommandFailedEvent) { unlock(e.CommandName) },
	}
}

func writes(command string) bool {
	switch command {
	case "insert", "update", "delete", "findAndModify", "createIndexes":
		return true
	}
	return false
}

// warningsOnly drops the server's notes about each connection and request.
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
