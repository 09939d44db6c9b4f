// Package ferretdb runs FerretDB v1, a server with MongoDB's wire protocol on SQLite or PostgreSQL, inside
// the test's process. The real driver connects to it over a real socket.
//
// FerretDB v1 reads a document, changes it and writes it back without a lock, so concurrent updates of one
// document can be lost. A proxy in front of it therefore serializes the write commands of all clients.
package ferretdb

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/FerretDB/FerretDB/ferretdb"
)

// Config sets the address and the data of the server: exactly one of Dir and PostgreSQLURL.
type Config struct {
	Addr          string // host:port; default 127.0.0.1:0
	Dir           string // of SQLite's files; Start creates it
	PostgreSQLURL string // of an existing database
	Logger        *slog.Logger
}

// Server is a running FerretDB.
type Server struct {
	uri   string
	front *serializer
	stop  context.CancelFunc
	done  chan struct{} // closed when the server has stopped
}

// starting serializes starts: FerretDB's New writes package variables.
var starting sync.Mutex

// Start starts a server and returns when it accepts connections.
func Start(c Config) (*Server, error) {
	engine := &ferretdb.Config{
		Listener: ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Logger:   slog.New(warningsOnly{c.Logger.Handler()}),
		Handler:  "postgresql", PostgreSQLURL: c.PostgreSQLURL,
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
	own, err := url.Parse(f.MongoDBURI())
	if err != nil {
		return nil, fmt.Errorf("reading FerretDB's own URI: %w", err)
	}
	front, err := newSerializer(cmp.Or(c.Addr, "127.0.0.1:0"), own.Host)
	if err != nil {
		return nil, err
	}
	own.Host, own.RawQuery = front.listener.Addr().String(), "directConnection=true&retryWrites=false"
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{stop: cancel, done: make(chan struct{}), uri: own.String(), front: front}
	go func() {
		defer close(s.done)
		_ = f.Run(ctx) // it returns nil, and only when ctx is done
	}()
	return s, nil
}

// URI returns the connection string. FerretDB has neither sessions nor a replica set, so the driver does not
// retry writes.
func (s *Server) URI() string { return s.uri }

// Stop closes all connections and returns when the data is closed. It may be called repeatedly.
func (s *Server) Stop() {
	s.front.stop()
	s.stop()
	<-s.done
}

// warningsOnly drops the server's logs about each connection and request.
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
