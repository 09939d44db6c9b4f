package bustest

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
)

// smallStreams is sufficient for tests.
var smallStreams = bus.StreamSettings{MaxBytes: 1 << 30, FilesMaxBytes: 1 << 30}

// Declare applies the declaration of the streams, as an operator does before starting the services.
func Declare(t testing.TB, url string, settings bus.StreamSettings) {
	t.Helper()
	DeclareConfig(t, bus.Config{URL: url}, settings)
}

// DeclareConfig is [Declare] for a server that needs more than an address.
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

// DeclareSmall is [Declare] with sizes for tests.
func DeclareSmall(t testing.TB, url string) {
	t.Helper()
	Declare(t, url, smallStreams)
}

// JetStream returns its own client, to inspect streams and to disturb them. It closes when the test ends.
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
