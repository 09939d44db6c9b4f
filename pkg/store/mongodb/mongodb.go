// Package mongodb implements the storage contract on MongoDB and compatible servers, for deployments on many machines.
//
// Reading order: mongodb.go (connection), collection.go (collections and the functions to read and write them),
// index.go (all indexes), one file per type, portable.go. docs/data.md shows each collection as mongosh prints it.
//
// Invariants:
//
//   - One document per record; its _id is the contract's id. Uniqueness relies on _id alone.
//   - No upserts. Some compatible servers lose all but the last of several concurrent upserts of a new _id. A
//     write inserts first and updates on a duplicate key, or updates first and inserts if nothing matched;
//     both repeat until one of the two took effect.
//   - No transactions and no change streams. A write of several documents is ordered so that a repeat after a
//     crash completes it.
//   - Every query has an index in index.go.
package mongodb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/parley-chat/parley/pkg/store"
)

const (
	// selectionTimeout is how long an operation waits for a writable server, and how long MongoDB may be unreachable
	// before operations fail immediately.
	selectionTimeout = 2 * time.Second
	// defaultTimeout ends an operation that a server accepted but does not answer.
	defaultTimeout = 5 * time.Second
	// heartbeat is how often the driver probes an unreachable server.
	heartbeat = time.Second
)

// Config configures the connection and the database.
type Config struct {
	URI       string // mongodb:// or mongodb+srv://; its options take precedence
	Database  string
	AppName   string // name of this process in MongoDB's logs; optional
	Logger    *slog.Logger
	IdleClose time.Duration         // how long a visitor may be silent before the chat counts as closed; 0: forever
	Monitor   *event.CommandMonitor // receives every command; optional
	Timeout   time.Duration         // of one operation; default 5 s, as the contract guarantees
}

// Store implements [store.Store].
type Store struct {
	client    *mongo.Client
	database  *mongo.Database
	conn      *connState
	idleClose time.Duration
	timeout   time.Duration
}

var _ store.Store = (*Store)(nil)

// Open prepares a store and returns immediately: the driver connects in the background and keeps reconnecting. It
// returns an error only for an invalid Config.
func Open(c Config) (*Store, error) {
	if c.URI == "" || c.Database == "" || c.Logger == nil {
		return nil, errors.New("mongodb: URI, Database and Logger are required")
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	conn := newConnState(c.Logger, selectionTimeout)
	client, err := mongo.Connect(clientOptions(c, conn))
	if err != nil {
		return nil, fmt.Errorf("mongodb: opening: %w", withoutSecrets(c.URI, err))
	}
	return &Store{
		client: client, database: client.Database(c.Database), conn: conn, idleClose: c.IdleClose, timeout: c.Timeout,
	}, nil
}

// withoutSecrets replaces the driver's error about a URI with a password, because the error may repeat a part of it.
func withoutSecrets(uri string, err error) error {
	if !strings.Contains(uri, "@") {
		return err
	}
	return errors.New("the URI is invalid; special characters of its user and password must be percent-encoded")
}

// clientOptions returns our defaults, overridden by the URI's options. Majority concerns for reads and writes: an
// acknowledged write survives the loss of a primary, and every later read sees it. It is also in the journal on disk:
// a server that is no replica set does not wait for its journal by itself, nor does a replica set whose
// writeConcernMajorityJournalDefault is false.
func clientOptions(c Config, conn *connState) *options.ClientOptions {
	o := options.Client().
		SetServerSelectionTimeout(selectionTimeout).
		SetConnectTimeout(selectionTimeout).
		SetHeartbeatInterval(heartbeat).
		SetWriteConcern(writeconcern.Majority()).
		SetReadConcern(readconcern.Majority()).
		SetServerMonitor(&event.ServerMonitor{
			TopologyDescriptionChanged: conn.topologyChanged,
			ServerHeartbeatFailed:      conn.heartbeatFailed,
		})
	if c.AppName != "" {
		o.SetAppName(c.AppName)
	}
	if c.Monitor != nil {
		o.SetMonitor(c.Monitor)
	}
	o.ApplyURI(c.URI)
	if o.WriteConcern.Journal == nil { // w in the URI replaces the whole concern
		journal := true
		o.WriteConcern.Journal = &journal
	}
	return o
}

// Ready implements [store.Store].
func (s *Store) Ready(ctx context.Context) error {
	return s.do(ctx, "pinging", func(ctx context.Context) error { return s.client.Ping(ctx, nil) })
}

// Close implements [store.Store].
func (s *Store) Close(ctx context.Context) error {
	if err := s.client.Disconnect(ctx); err != nil && !errors.Is(err, mongo.ErrClientDisconnected) {
		return fmt.Errorf("closing MongoDB: %w", err)
	}
	return nil
}
