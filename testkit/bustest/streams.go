package bustest

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
)

// smallStreams are the sizes for tests.
var smallStreams = bus.StreamSettings{MaxBytes: 1 << 30, FilesMaxBytes: 1 << 30}

// Declare creates the declared streams, as an operator does before starting the services.
func Declare(t testing.TB, url string, settings bus.StreamSettings) {
	t.Helper()
	DeclareConfig(t, bus.Config{URL: url}, settings)
}

// DeclareConfig is [Declare] with a custom bus configuration.
func DeclareConfig(t testing.TB, cfg bus.Config, settings bus.StreamSettings) {
	t.Helper()
	cfg.Observe = true
	b := OpenConfig(t, cfg)
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, err := b.ApplyStreams(ctx, settings); err != nil {
		t.Fatalf("declaring the streams: %v", err)
	}
}

// DeclareSmall is [Declare] with small sizes.
func DeclareSmall(t testing.TB, url string) {
	t.Helper()
	Declare(t, url, smallStreams)
}

// JetStream returns a separate client, to inspect and manipulate streams. It is closed when the test ends.
func JetStream(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatalf("JetStream: %v", err)
	}
	return js
}

// MessageIDs returns the ids of all messages that a stream holds.
func MessageIDs(t testing.TB, url, stream string) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, err := JetStream(t, url).Stream(ctx, stream)
	if err != nil {
		t.Fatalf("finding the stream %s: %v", stream, err)
	}
	consumer, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatalf("reading the stream %s: %v", stream, err)
	}
	ids := map[string]bool{}
	for left := s.CachedInfo().State.Msgs; left > 0; left-- {
		m, err := consumer.Next(jetstream.FetchMaxWait(limit))
		if err != nil {
			t.Fatalf("reading the stream %s: %v", stream, err)
		}
		ids[m.Headers().Get("Nats-Msg-Id")] = true
	}
	return ids
}
