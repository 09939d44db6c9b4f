package socketio

import (
	"bytes"
	"context"
	"testing"
)

// TestOnBroadcast drops one event, excludes a socket from another, and delivers a third to all.
func TestOnBroadcast(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	nsp := h.srv.Of("/")
	nsp.Use(func(_ context.Context, s *Socket) error { return s.Join("lobby") })
	alice, bob := h.dial(), h.dial()
	alice.connect("/", "")
	id := bob.connect("/", "")
	nsp.OnBroadcast(func(b *Broadcast) int {
		switch {
		case bytes.HasPrefix(b.Data, []byte(`["dropped"`)):
			return 0
		case bytes.HasPrefix(b.Data, []byte(`["kept"`)):
			b.Except = append(b.Except, id)
		}
		return nsp.EmitLocal(b)
	})
	for _, event := range []string{"dropped", "kept", "all"} {
		if err := nsp.To("lobby").Emit(event); err != nil {
			t.Fatal(err)
		}
	}
	if n := nsp.EmitLocal(&Broadcast{Selection: Selection{Rooms: []string{"lobby"}}, Data: []byte(`["dropped"]`)}); n != 2 {
		t.Errorf("got %d sockets past the hook, want 2", n)
	}
	alice.want(`42["kept"]`, `42["all"]`, `42["dropped"]`)
	bob.want(`42["all"]`, `42["dropped"]`)
}

// TestNamespaceHandlers tests handlers of a namespace, which a socket's own handlers override.
func TestNamespaceHandlers(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	nsp := h.srv.Of("/")
	ids := make(chan string, 1)
	nsp.On("who", func(s *Socket, args Args, ack Ack) { ids <- s.ID(); _ = ack(args.String(0)) })
	w := h.dial()
	id := w.connect("/", "")
	w.write(`427["who","me"]`)
	w.want(`437["me"]`)
	if got := <-ids; got != id {
		t.Errorf("got socket %s, want %s", got, id)
	}
	w.write(`428["nobody listens"]`)
	nsp.Socket(id).On("who", func(_ Args, ack Ack) { _ = ack("own") })
	w.write(`429["who"]`)
	w.want(`439["own"]`)
}

// TestExceptASocketThatIsConnecting: the ID of a socket excludes it as soon as it is in a room, before it is
// in the namespace.
func TestExceptASocketThatIsConnecting(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	nsp := h.srv.Of("/")
	nsp.Use(func(_ context.Context, s *Socket) error {
		if err := s.Join("lobby"); err != nil {
			return err
		}
		sel := Selection{Rooms: []string{"lobby"}, Except: []string{s.ID()}}
		if n := nsp.EmitLocal(&Broadcast{Selection: sel, Data: []byte(`["excluded"]`)}); n != 0 {
			t.Errorf("got %d sockets, want none", n)
		}
		nsp.EmitLocal(&Broadcast{Selection: Selection{Rooms: sel.Rooms}, Data: []byte(`["all"]`)})
		return nil
	})
	c := h.dial()
	c.connect("/", "")
	c.want(`42["all"]`)
}
