package embedded_test

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/testkit/logtest"
)

func TestNATSKeepsStreamsAcrossARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNATS(t, embedded.NATSConfig{Dir: dir})
	addr := n.Server().Addr().String()
	js := jetStream(t, n)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatalf("creating a stream: %v", err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatalf("publishing: %v", err)
	}
	n.Stop()
	n.Stop()

	n = startNATS(t, embedded.NATSConfig{Dir: dir, Addr: addr})
	if got := n.Server().Addr().String(); got != addr {
		t.Errorf("got address %s, want %s as before", got, addr)
	}
	stream, err := jetStream(t, n).Stream(t.Context(), "S")
	if err != nil {
		t.Fatalf("looking for the stream: %v", err)
	}
	m, err := stream.GetMsg(t.Context(), 1)
	if err != nil || string(m.Data) != "kept" {
		t.Errorf("got %v, %v, want the message published before the restart", m, err)
	}
}

func TestNATSAcceptsAnEventWithTheLargestBody(t *testing.T) {
	t.Parallel()
	n := startNATS(t, embedded.NATSConfig{Dir: t.TempDir()})
	js := jetStream(t, n)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", make([]byte, 1<<20+4096)); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

// The streams may reserve more than the disk's capacity: they limit their own use.
func TestNATSReservesNoDisk(t *testing.T) {
	t.Parallel()
	js := jetStream(t, startNATS(t, embedded.NATSConfig{Dir: t.TempDir()}))
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: 512 << 30}); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

func TestStartNATSReturnsTheReasonOfAFailure(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for name, c := range map[string]struct {
		cfg  embedded.NATSConfig
		want string
	}{
		"address in use": {embedded.NATSConfig{Dir: t.TempDir(), Addr: taken.Addr().String()}, "address already in use"},
		"no folder":      {embedded.NATSConfig{}, "Dir is missing"},
		"no port":        {embedded.NATSConfig{Dir: t.TempDir(), Addr: "127.0.0.1"}, "address"},
		"no number":      {embedded.NATSConfig{Dir: t.TempDir(), Addr: "127.0.0.1:nats"}, "port"},
		"port too large": {embedded.NATSConfig{Dir: t.TempDir(), Addr: "127.0.0.1:70000"}, "port"},
	} {
		n, err := embedded.StartNATS(c.cfg)
		if err == nil {
			n.Stop()
			t.Errorf("%s: got a server, want an error", name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, want it to contain %q", name, err, c.want)
		}
	}
}

func TestNATSLogsToTheGivenLogger(t *testing.T) {
	t.Parallel()
	var log logtest.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	startNATS(t, embedded.NATSConfig{Dir: t.TempDir(), Logger: logger}).Stop()
	if !strings.Contains(log.String(), "Server is ready") {
		t.Errorf("got %q, want the server's lines", log.String())
	}
}

func startNATS(t *testing.T, cfg embedded.NATSConfig) *embedded.NATS {
	t.Helper()
	n, err := embedded.StartNATS(cfg)
	if err != nil {
		t.Fatalf("starting NATS: %v", err)
	}
	t.Cleanup(n.Stop)
	return n
}

func jetStream(t *testing.T, n *embedded.NATS) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(n.URL())
	if err != nil {
		t.Fatalf("connecting to %s: %v", n.URL(), err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
