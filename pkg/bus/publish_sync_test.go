package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// syncWorld is a server with streams that nothing syncs but the test, and a bus.
type syncWorld struct {
	url string
	bus *bus.Bus
}

func newSyncWorld(t *testing.T, sync bus.Sync) syncWorld {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	bustest.Declare(t, s.ClientURL(), bus.StreamSettings{MaxBytes: 64 << 20, Sync: sync})
	return syncWorld{s.ClientURL(), bustest.Open(t, s.ClientURL())}
}

// syncer answers the requests for syncs; each waits for a result of the test.
type syncer struct {
	asked   chan string // stream
	results chan error
}

func (w syncWorld) syncer(t *testing.T) *syncer {
	t.Helper()
	s := &syncer{make(chan string, 100), make(chan error, 100)}
	b := bustest.OpenConfig(t, bus.Config{URL: w.url, Name: "syncer", Observe: true})
	stop, err := b.RPC().HandleSyncs(func(ctx context.Context, stream string) error {
		s.asked <- stream
		select {
		case err := <-s.results:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// publish publishes a reply in the background.
func (w syncWorld) publish(t *testing.T, visitor string) (result chan error) {
	result = make(chan error, 1)
	go func() { result <- w.bus.Publish(t.Context(), event.Derived(), reply(visitor, 1)) }()
	return result
}

// Publishers that wait during a sync share the next, and none returns before its own.
func TestPublishersShareSyncs(t *testing.T) {
	t.Parallel()
	w := newSyncWorld(t, bus.SyncShared)
	s := w.syncer(t)
	first := w.publish(t, "first")
	if stream := receive(t, "the first request", s.asked); stream != subject.Replies {
		t.Errorf("got a request for %s, want %s", stream, subject.Replies)
	}
	var others []chan error
	for n := range 20 {
		others = append(others, w.publish(t, fmt.Sprint("other", n)))
	}
	timetest.Until(t, "all are stored", func() bool { return streamMessages(t, w.bus, subject.Replies) == 21 })
	select {
	case err := <-first:
		t.Fatalf("the first returned %v before its sync", err)
	default:
	}
	s.results <- nil
	if err := receive(t, "the first", first); err != nil {
		t.Errorf("the first: got %v, want no error", err)
	}
	for range others {
		s.results <- nil // for as many requests as there may be
	}
	for n, other := range others {
		if err := receive(t, "another", other); err != nil {
			t.Errorf("another (%d): got %v, want no error", n, err)
		}
	}
	// Mostly one; on a busy machine their acknowledgements arrive in groups after the first answer.
	if requests := len(s.asked); requests > len(others)/2 {
		t.Errorf("got %d requests for %d publishers, want that they share them", requests, len(others))
	}
}

// A disk that fails, and a sync that does not run, are errors; the next publish of the same event stores it once.
func TestPublishNotSynced(t *testing.T) {
	t.Parallel()
	w := newSyncWorld(t, bus.SyncShared)
	message := reply("visitor", 1)
	err := w.bus.Publish(t.Context(), event.Derived(), message)
	if !apperr.Is(err, apperr.Unavailable) || !strings.Contains(err.Error(), "parleyctl streams sync") {
		t.Errorf("without a sync: got %v, want Unavailable that names the command", err)
	}
	if err := w.bus.Ready(t.Context()); err == nil {
		t.Error("without a sync: the bus is ready")
	}
	s := w.syncer(t)
	for range 3 { // the tries of a publish
		s.results <- errors.New("input/output error")
	}
	err = w.bus.Publish(t.Context(), event.Derived(), message)
	if !apperr.Is(err, apperr.Unavailable) || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("the disk fails: got %v, want Unavailable with the reason", err)
	}
	s.results <- nil
	if err := w.bus.Publish(t.Context(), event.Derived(), message); err != nil {
		t.Errorf("afterwards: got %v, want no error", err)
	}
	if err := w.bus.Ready(t.Context()); err != nil {
		t.Errorf("afterwards: the bus is not ready: %v", err)
	}
	if n := streamMessages(t, w.bus, subject.Replies); n != 1 {
		t.Errorf("got %d messages, want 1", n)
	}
}

// Streams that lose nothing of worth, and those that their metadata leaves to the server, are not synced.
func TestPublishWithoutSync(t *testing.T) {
	t.Parallel()
	lazy := newSyncWorld(t, bus.SyncNone)
	if err := lazy.bus.Publish(t.Context(), event.Derived(), reply("visitor", 1)); err != nil {
		t.Errorf("STREAM_SYNC=none: got %v, want no error", err)
	}
	if err := lazy.bus.Sync(t.Context(), bus.FilesStream); err == nil {
		t.Error("a stream that does not exist: got no error")
	}
	shared := newSyncWorld(t, bus.SyncShared)
	part := event.MessagePart{AppID: "app", ChatUserID: "visitor", MessageID: "message"}
	if err := shared.bus.Publish(t.Context(), event.Derived(), part); err != nil {
		t.Errorf("PARTS: got %v, want no error", err)
	}
}

// The record of a lost tail counts when it is on the disk.
func TestLostTailRecordIsSynced(t *testing.T) {
	t.Parallel()
	w := newSyncWorld(t, bus.SyncShared)
	syncer := w.syncer(t)
	s, err := w.bus.State(t.Context(), subject.Replies)
	if err != nil {
		t.Fatal(err)
	}
	notice := func(result error) error {
		t.Helper()
		syncer.results <- result
		mark := bus.StreamMark{Stream: subject.Replies, Epoch: s.Epoch, Sequence: 10}
		_, _, err := bustest.Open(t, w.url).NoticeLoss(t.Context(), mark)
		if got := receive(t, "the request for a sync", syncer.asked); got != subject.Positions {
			t.Errorf("got a request for a sync of %s, want %s", got, subject.Positions)
		}
		return err
	}
	if err := notice(nil); err != nil {
		t.Error(err)
	}
	s.Epoch = state(t, bustest.Open(t, w.url)).Epoch
	if err := notice(errors.New("the disk is full")); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("got %v from a disk that does not sync, want Unavailable", err)
	}
}
