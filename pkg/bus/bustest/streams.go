package bustest

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
)

// smallStreams are large enough for tests.
var smallStreams = bus.StreamSettings{MaxBytes: 1 << 30, FilesMaxBytes: 1 << 30}

// Declare applies the declaration of the streams, as an operator does before the services are of use.
func Declare(t testing.TB, url string, settings bus.StreamSettings, options ...nats.Option) {
	t.Helper()
	conn, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatalf("connecting to declare the streams: %v", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, err := bus.Apply(ctx, js, settings); err != nil {
		t.Fatalf("declaring the streams: %v", err)
	}
}

// DeclareSmall is [Declare] with sizes for tests.
func DeclareSmall(t testing.TB, url string, options ...nats.Option) {
	t.Helper()
	Declare(t, url, smallStreams, options...)
}
