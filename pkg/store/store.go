package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

const (
	// patience is how long an operation waits for a server that can take writes, and how long MongoDB may be away before
	// operations fail at once.
	patience = 2 * time.Second
	// operationTimeout ends an operation that a server has taken but does not answer.
	operationTimeout = 5 * time.Second
	// heartbeat is how often the driver looks whether a server that was away is back.
	heartbeat = time.Second
)

// Config says where the documents are.
type Config struct {
	URI      string // mongodb:// or mongodb+srv://; its options win over ours
	Database string
	AppName  string // how MongoDB's own logs call us; optional
	Logger   *slog.Logger
	// IdleClose is how long a visitor may be silent before their chat counts as closed; 0: for ever.
	IdleClose time.Duration
}

// Store reads and writes documents. It is safe for concurrent use.
type Store struct {
	client    *mongo.Client
	database  *mongo.Database
	link      *link
	log       *slog.Logger
	idleClose time.Duration
}

// Open prepares a store and returns at once: the driver connects in the background and reconnects for ever. The error tells
// only of a wrong Config.
func Open(c Config) (*Store, error) {
	if c.URI == "" || c.Database == "" || c.Logger == nil {
		return nil, errors.New("store: URI, Database and Logger are required")
	}
	l := newLink(c.Logger, patience)
	client, err := mongo.Connect(clientOptions(c, l))
	if err != nil {
		return nil, fmt.Errorf("store: opening MongoDB: %w", withoutSecrets(c.URI, err))
	}
	return &Store{client: client, database: client.Database(c.Database), link: l, log: c.Logger, idleClose: c.IdleClose}, nil
}

// withoutSecrets hides what the driver says of a URI that holds a password: it may repeat a piece of it.
func withoutSecrets(uri string, err error) error {
	if !strings.Contains(uri, "@") {
		return err
	}
	return errors.New("the URI cannot be read; special characters of its user and password must be percent-encoded")
}

// clientOptions are our defaults with the URI's own options over them. Majority on both sides means that what we have
// acknowledged outlives a primary, and that we read it back.
func clientOptions(c Config, l *link) *options.ClientOptions {
	o := options.Client().
		SetServerSelectionTimeout(patience).
		SetConnectTimeout(patience).
		SetHeartbeatInterval(heartbeat).
		SetWriteConcern(writeconcern.Majority()).
		SetReadConcern(readconcern.Majority()).
		SetServerMonitor(&event.ServerMonitor{
			TopologyDescriptionChanged: l.topologyChanged,
			ServerHeartbeatFailed:      l.heartbeatFailed,
		})
	if c.AppName != "" {
		o.SetAppName(c.AppName)
	}
	return o.ApplyURI(c.URI)
}

// Ready returns nil when MongoDB answers, else an Unavailable error.
func (s *Store) Ready(ctx context.Context) error {
	return s.do(ctx, "pinging", func(ctx context.Context) error { return s.client.Ping(ctx, nil) })
}

// Close ends all connections. Operations that are under way get ctx's time to finish.
func (s *Store) Close(ctx context.Context) error {
	if err := s.client.Disconnect(ctx); err != nil {
		return fmt.Errorf("closing MongoDB: %w", err)
	}
	return nil
}

// do is the one way in which operations run: not at all while MongoDB is known to be away, with a deadline, and with the
// driver's error translated.
func (s *Store) do(ctx context.Context, act string, operation func(context.Context) error) error {
	if err := s.link.check(); err != nil {
		return translate(ctx, act, err)
	}
	bounded, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	return translate(ctx, act, operation(bounded))
}

func (s *Store) in(c collection) *mongo.Collection { return s.database.Collection(string(c)) }

// get reads the document with that id.
func get[D any](ctx context.Context, s *Store, from collection, id string) (D, error) {
	var d D
	err := s.do(ctx, "reading from "+string(from), func(ctx context.Context) error {
		return s.in(from).FindOne(ctx, byID(id)).Decode(&d)
	})
	return d, missing(err, from)
}

// put writes a whole document, whether or not it was there.
func (s *Store) put(ctx context.Context, into collection, id string, document any) error {
	return s.do(ctx, "writing to "+string(into), func(ctx context.Context) error {
		return again(func() error {
			_, err := s.in(into).ReplaceOne(ctx, byID(id), document, options.Replace().SetUpsert(true))
			return err
		})
	})
}

// insert adds a document and reports false when its id was taken.
func (s *Store) insert(ctx context.Context, into collection, document any) (bool, error) {
	err := s.do(ctx, "inserting into "+string(into), func(ctx context.Context) error {
		_, err := s.in(into).InsertOne(ctx, document)
		return err
	})
	if mongo.IsDuplicateKeyError(err) {
		return false, nil
	}
	return err == nil, err
}

// update changes the document with that id and reports false when it is not there.
func (s *Store) update(ctx context.Context, in collection, id string, change bson.D) (bool, error) {
	var found bool
	err := s.do(ctx, "updating "+string(in), func(ctx context.Context) error {
		r, err := s.in(in).UpdateOne(ctx, byID(id), change)
		found = err == nil && r.MatchedCount > 0
		return err
	})
	return found, err
}

// again repeats an upsert that lost the race for its id: MongoDB answers two upserts of a new id at once with a duplicate
// key for one of them, and the second try finds the document.
func again(upsert func() error) error {
	for range 2 {
		if err := upsert(); !mongo.IsDuplicateKeyError(err) {
			return err
		}
	}
	return upsert()
}

func byID(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }
