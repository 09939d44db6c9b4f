package store_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/pkg/nettest"
	"github.com/parley-chat/parley/pkg/store"
)

// startAt starts an engine of the test's own, whatever server the other tests use: this one is going to be stopped.
func startAt(t *testing.T, addr, dir string) *embedded.MongoDB {
	t.Helper()
	engine, err := embedded.StartMongoDB(embedded.MongoDBConfig{Addr: addr, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("starting the engine: %v", err)
	}
	t.Cleanup(engine.Stop)
	return engine
}

func openStore(t *testing.T, uri string) *store.Store {
	t.Helper()
	s, err := store.Open(store.Config{URI: uri, Database: "parley", AppName: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// TestMongoDBAwayAndBack stops the engine in the middle of the store's life and starts it again on the same address and data.
func TestMongoDBAwayAndBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	engine := startAt(t, "127.0.0.1:0", dir)
	uri, addr := engine.URI(), engine.Addr()
	s := openStore(t, uri)
	want := chat.Company{ID: "c", Name: "Kept"}
	if err := s.PutCompany(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	engine.Stop()

	for _, bound := range []time.Duration{4 * time.Second, time.Second, time.Second} {
		began := time.Now()
		_, err := s.Company(t.Context(), "c")
		if took := time.Since(began); !apperr.Is(err, apperr.Unavailable) || took > bound {
			t.Fatalf("while away: got %v after %v, want Unavailable within %v", err, took, bound)
		}
	}
	if err := s.Ready(t.Context()); !apperr.Is(err, apperr.Unavailable) {
		t.Fatalf("ready while away: got %v, want Unavailable", err)
	}

	startAt(t, addr, dir)
	eventually(t, func() error { return s.Ready(t.Context()) })
	if got, err := s.Company(t.Context(), "c"); err != nil || got != want {
		t.Fatalf("when back: got %+v, %v, want %+v", got, err, want)
	}
}

// TestMongoDBAwayAtTheStart opens the store before there is a server.
func TestMongoDBAwayAtTheStart(t *testing.T) {
	t.Parallel()
	addr := nettest.Addr(t)
	s := openStore(t, "mongodb://"+addr+"/?directConnection=true")
	began := time.Now()
	if err := s.Ready(t.Context()); !apperr.Is(err, apperr.Unavailable) {
		t.Fatalf("before the start: got %v, want Unavailable", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Fatalf("it took %v to say so, want about 2 s", took)
	}
	startAt(t, addr, t.TempDir())
	eventually(t, func() error { return s.Ready(t.Context()) })
}

// TestSilentMongoDB has a server that takes connections and says nothing.
func TestSilentMongoDB(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	s := openStore(t, "mongodb://"+listener.Addr().String()+"/?directConnection=true")
	began := time.Now()
	if err := s.Ready(t.Context()); !apperr.Is(err, apperr.Unavailable) || time.Since(began) > 4*time.Second {
		t.Fatalf("got %v after %v, want Unavailable after about 2 s", err, time.Since(began))
	}
}

func TestCallersContext(t *testing.T) {
	t.Parallel()
	s := openStore(t, startAt(t, "127.0.0.1:0", t.TempDir()).URI())
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Company(canceled, "c")
	if !errors.Is(err, context.Canceled) || apperr.Is(err, apperr.Unavailable) {
		t.Errorf("a caller that gave up: got %v, want its context's error", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err = s.Company(late, "c")
	if !errors.Is(err, context.DeadlineExceeded) || !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("a caller without time: got %v, want Unavailable for its deadline", err)
	}
}

func TestOpenRefusesWrongConfigs(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for why, c := range map[string]store.Config{
		"nothing":             {},
		"no scheme":           {URI: "localhost:27017", Database: "d", Logger: log},
		"a wrong option":      {URI: "mongodb://localhost/?w=-7", Database: "d", Logger: log},
		"no database":         {URI: "mongodb://localhost", Logger: log},
		"no logger":           {URI: "mongodb://localhost", Database: "d"},
		"no host in the URI":  {URI: "mongodb://", Database: "d", Logger: log},
		"a port out of range": {URI: "mongodb://localhost:99999/", Database: "d", Logger: log},
	} {
		if s, err := store.Open(c); err == nil {
			_ = s.Close(t.Context())
			t.Errorf("%s: got no error", why)
		}
	}
}

// TestURIsOptionsWin opens a store with retryable writes, which the engine does not have, and with options of ours turned over.
func TestURIsOptionsWin(t *testing.T) {
	t.Parallel()
	engine := startAt(t, "127.0.0.1:0", t.TempDir())
	s := openStore(t, "mongodb://"+engine.Addr()+"/?retryWrites=true&w=1&readConcernLevel=local&serverSelectionTimeoutMS=500")
	if err := s.PutCompany(t.Context(), chat.Company{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Company(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
}

// eventually tries until it works, for at most ten seconds.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("still not after 10 s: %v", err)
		case <-retry.C:
		}
	}
}
