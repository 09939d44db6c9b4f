// Package mongodb opens a store of package pkg/store/mongodb for tests on each engine: FerretDB on SQLite and
// on PostgreSQL, and the server in MONGODB_URI. Its own tests are that store's tests: the contract suite,
// round trips, query plans, indexes.
package mongodb

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/mongodb"
	"github.com/parley-chat/parley/testkit/engines/ferretdb"
	"github.com/parley-chat/parley/testkit/engines/postgres"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/proxy"
	"github.com/parley-chat/parley/testkit/storetest"
)

// Engine is a server with MongoDB's protocol.
type Engine struct {
	Name     string
	URI      string
	dir      string // of FerretDB's files on SQLite
	external bool   // a server that outlives the test, and supports concurrent updates of one document
}

// IsFerretDB reports whether the engine is FerretDB, which has no TTL indexes and no explain.
func (e Engine) IsFerretDB() bool { return !e.external }

// FerretDB starts a FerretDB on SQLite for the test, a long one (see [needs.Long]).
func FerretDB(t testing.TB) Engine {
	t.Helper()
	needs.Long(t)
	return onFerretDB(t, "FerretDB on SQLite", ferretdb.Config{Dir: t.TempDir()})
}

// FerretDBOnPostgreSQL starts a FerretDB on its own PostgreSQL for the test, which needs PostgreSQL (see
// [needs.Program]).
func FerretDBOnPostgreSQL(t testing.TB) Engine {
	t.Helper()
	needs.Long(t)
	server, err := postgres.Start()
	if errors.Is(err, postgres.ErrMissing) {
		needs.Missing(t, "postgresql")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return onFerretDB(t, "FerretDB on PostgreSQL", ferretdb.Config{PostgreSQLURL: server.URL("postgres")})
}

func onFerretDB(t testing.TB, name string, c ferretdb.Config) Engine {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	server, err := ferretdb.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return Engine{Name: name, URI: server.URI(), dir: c.Dir}
}

// Named returns the engine in MONGODB_URI, if it is set.
func Named() (e Engine, ok bool) {
	uri := os.Getenv("MONGODB_URI")
	return Engine{Name: "MONGODB_URI", URI: uri, external: true}, uri != ""
}

// Each runs a test on every engine: on the two FerretDBs, and on the one in MONGODB_URI if it is set.
func Each(t *testing.T, test func(t *testing.T, e Engine)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB) Engine{"SQLite": FerretDB, "PostgreSQL": FerretDBOnPostgreSQL} {
		t.Run("FerretDB on "+name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
	if e, ok := Named(); ok {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// Database returns a database name that no other test uses. It is dropped when the test ends, if the engine
// outlives the test.
func (e Engine) Database(t testing.TB) string {
	t.Helper()
	name := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if e.external {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			client, err := mongo.Connect(options.Client().ApplyURI(e.URI))
			if err != nil {
				t.Errorf("dropping %s: %v", name, err)
				return
			}
			defer func() { _ = client.Disconnect(ctx) }()
			if err := client.Database(name).Drop(ctx); err != nil {
				t.Errorf("dropping %s: %v", name, err)
			}
		})
	}
	if e.dir != "" {
		raw := e.Raw(t, name)
		for _, collection := range append(store.Kinds(), "identityOwners") {
			if err := raw.CreateCollection(t.Context(), string(collection)); err != nil {
				t.Fatal(err)
			}
		}
		if err := ferretdb.IndexIDs(t.Context(), e.dir, name); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// Open returns a store on a database; it is closed when the test ends.
func (e Engine) Open(t testing.TB, database string, change ...func(*mongodb.Config)) *mongodb.Store {
	t.Helper()
	s, err := e.open(database, change...)
	if err != nil {
		t.Fatalf("opening the store: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	return s
}

func (e Engine) open(database string, change ...func(*mongodb.Config)) (*mongodb.Store, error) {
	c := mongodb.Config{URI: e.URI, Database: database, AppName: "test", Logger: slog.New(slog.DiscardHandler)}
	for _, apply := range change {
		apply(&c)
	}
	if e.IsFerretDB() {
		c.Timeout = 2 * time.Minute // its writes are serialized
	}
	return mongodb.Open(c)
}

// Suite returns the engine for the contract suite. Its addresses go through a proxy, which can silence the
// engine, if the URI names one server by its address.
func (e Engine) Suite() storetest.Engine {
	var proxies sync.Map // address -> its proxy
	suite := storetest.Engine{Open: OpenAddress, Dump: dump}
	target, err := url.Parse(e.URI)
	if err != nil || target.Scheme != "mongodb" || strings.Contains(target.Host, ",") {
		suite.Create = func(t testing.TB) string { return e.address(e.URI, e.Database(t)) }
		return suite
	}
	suite.Create = func(t testing.TB) string {
		t.Helper()
		host := target.Host
		if target.Port() == "" {
			host += ":27017"
		}
		p, through := proxy.Start(t, host), *target
		options := through.Query()
		options.Set("directConnection", "true")
		through.Host, through.RawQuery = p.Addr(), options.Encode()
		if through.Path == "" {
			through.Path = "/"
		}
		address := e.address(through.String(), e.Database(t))
		proxies.Store(address, p)
		return address
	}
	suite.Silence = func(t testing.TB, address string) (end func()) {
		t.Helper()
		p, _ := proxies.Load(address)
		return p.(*proxy.Proxy).Silence()
	}
	return suite
}

const externalMark = "external"

// address is the argument of [OpenAddress], valid in other processes too.
func (e Engine) address(uri, database string) string {
	address := uri + " " + database
	if e.external {
		address += " " + externalMark
	}
	return address
}

// OpenAddress opens a store at an address that [Engine.Suite] created.
func OpenAddress(address string, o storetest.Options) (store.Store, error) {
	parts := strings.Fields(address)
	e := Engine{URI: parts[0], external: slices.Contains(parts, externalMark)}
	s, err := e.open(parts[1], func(c *mongodb.Config) { c.IdleClose = o.IdleClose })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// dump returns all documents of the database at an address, as BSON.
func dump(t testing.TB, address string) (all []byte) {
	t.Helper()
	parts := strings.Fields(address)
	raw := Engine{URI: parts[0]}.Raw(t, parts[1])
	for _, kind := range store.Kinds() {
		var documents []bson.Raw
		cursor, err := raw.Collection(string(kind)).Find(t.Context(), bson.D{})
		if err == nil {
			err = cursor.All(t.Context(), &documents)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range documents {
			all = append(all, d...)
		}
	}
	return all
}

// Raw returns a database of the plain driver.
func (e Engine) Raw(t testing.TB, database string) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(e.URI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	return client.Database(database)
}
