package rpc_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestInvalidationReachesAllBuses(t *testing.T) {
	t.Parallel()
	addr, dir := nettest.Addr(t), t.TempDir()
	start := func() *embedded.NATS {
		n, err := embedded.StartNATS(embedded.NATSConfig{Addr: addr, Dir: dir})
		if err != nil {
			t.Fatalf("starting NATS: %v", err)
		}
		return n
	}
	one, err := bus.Open(bus.Config{
		URL: "nats://" + addr, Name: "one", Streams: []string{}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(one.Close)
	heard := make(chan string, 10)
	// while NATS is disconnected
	stop, err := one.RPC().OnInvalidate(func(kind, key string) { heard <- "one " + kind + " " + key })
	if err != nil {
		t.Fatalf("subscribing while NATS is disconnected: %v", err)
	}
	if err := one.RPC().Invalidate(t.Context(), "chat", "k0"); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("while NATS is disconnected: got %v, want Unavailable", err)
	}
	server := start()
	bustest.AwaitReady(t, one)
	two := bustest.OpenConfig(t, bus.Config{URL: server.URL(), Streams: []string{}})
	if _, err := two.RPC().OnInvalidate(func(kind, key string) { heard <- "two " + kind + " " + key }); err != nil {
		t.Fatal(err)
	}
	bustest.AwaitReady(t, two)
	expectBoth := func(what string) {
		t.Helper()
		got := map[string]bool{receive(t, what, heard): true, receive(t, what, heard): true}
		if !got["one "+what] || !got["two "+what] {
			t.Errorf("got %v, want %q received by both", got, what)
		}
	}
	if err := two.RPC().Invalidate(t.Context(), "access_token", "k1"); err != nil {
		t.Fatal(err)
	}
	expectBoth("access_token k1")

	server.Stop()
	timetest.Until(t, "both are disconnected", func() bool { return one.Ready(t.Context()) != nil && two.Ready(t.Context()) != nil })
	server = start()
	t.Cleanup(server.Stop)
	bustest.AwaitReady(t, one)
	bustest.AwaitReady(t, two)
	if err := one.RPC().Invalidate(t.Context(), "chat", "k2"); err != nil {
		t.Fatal(err)
	}
	expectBoth("chat k2")

	stop()
	stop()
	if err := one.RPC().Invalidate(t.Context(), "chat", "k3"); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, "the last", heard); got != "two chat k3" {
		t.Errorf("got %q, want only the second bus to receive it", got)
	}
}

func TestInvalidateRejectsInvalidTokens(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	for _, key := range []string{"", "a.b", "*", ">", "a b"} {
		if err := b.RPC().Invalidate(t.Context(), "chat", key); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("key %q: got %v, want Invalid", key, err)
		}
	}
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("timeout waiting for %s", what)
		panic("unreachable")
	}
}
