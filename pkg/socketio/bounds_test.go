package socketio

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestNoAttachments tests a server without binary packets and one with the default limit.
func TestNoAttachments(t *testing.T) {
	t.Parallel()
	const event = `451-["message",{"_placeholder":true,"num":0}]`
	for most, taken := range map[int]bool{-1: false, 0: true, 1: true} {
		h := newHarness(t, Options{MaxAttachments: most})
		h.srv.Of("/").OnConnection(func(s *Socket) { s.On("message", func(Args, Ack) { _ = s.Emit("taken") }) })
		w := h.dial()
		w.connect("/", "")
		w.write(event)
		if taken {
			w.writeBinary(1)
			w.want(`42["taken"]`)
			continue
		}
		w.wantClosed()
	}
}

// TestUnfinishedPacketIsClosed announces an attachment and never sends it.
func TestUnfinishedPacketIsClosed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{PartialTimeout: 50 * time.Millisecond})
	h.srv.Of("/")
	whole, begun := h.dial(), h.dial()
	whole.connect("/", "")
	begun.connect("/", "")
	const event = `451-["message",{"_placeholder":true,"num":0}]`
	whole.write(event)
	whole.writeBinary(1)
	begun.write(event)
	begun.wantClosed()
	whole.write("40/nowhere") // it is not counted any more
	whole.want(`44/nowhere,{"message":"Invalid namespace"}`)
}

// TestLeavingCountsAsPending has clients that join and leave: they count as pending again.
func TestLeavingCountsAsPending(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{ConnectTimeout: 300 * time.Millisecond})
	h.srv.Of("/")
	h.srv.Of("/other")
	left, moved := h.dial(), h.dial()
	for _, w := range []*wire{left, moved} {
		w.connect("/", "")
	}
	if got := h.srv.Joined(); got != 2 {
		t.Errorf("got %d joined, want 2", got)
	}
	moved.connect("/other", "")
	for _, w := range []*wire{left, moved} {
		w.write("41")
	}
	left.wantClosed()
	moved.write("40/nowhere")
	moved.want(`44/nowhere,{"message":"Invalid namespace"}`)
	if got := h.srv.Joined(); got != 1 {
		t.Errorf("got %d joined, want 1", got)
	}
}

// TestPendingSessionsMakeRoom opens many sessions that do not join; one that joins is accepted and stays open.
func TestPendingSessionsMakeRoom(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{MaxPending: 5, MaxPendingPerAddress: 3})
	h.srv.Of("/").OnConnection(func(s *Socket) { s.On("e", func(Args, Ack) { _ = s.Emit("here") }) })
	inside := h.dial()
	inside.connect("/", "")
	var idle []*wire
	for range 20 {
		idle = append(idle, h.dial())
	}
	late := h.dial()
	late.connect("/", "")
	for _, w := range idle[:17] {
		w.wantClosed()
	}
	for i, w := range []*wire{inside, late} {
		if w.write(`42["e"]`); w.read() != `42["here"]` {
			t.Error(fmt.Sprint("client ", i, " was closed, want it served"))
		}
	}
	if st := h.srv.Stats(); h.srv.Joined() != 2 || st.Sockets != 2 {
		t.Errorf("got %d joined, %+v", h.srv.Joined(), st)
	}
}

// TestConnectErrorsCloseTheSession has clients that are refused again and again: all get the answers, the
// last one included.
func TestConnectErrorsCloseTheSession(t *testing.T) {
	t.Parallel()
	const refusal = `44{"message":"no"}`
	for name, test := range map[string]struct{ limit, refused int }{
		"default": {0, 3}, "one": {1, 1}, "two": {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, Options{MaxConnectErrors: test.limit})
			h.srv.Of("/").Use(func(context.Context, *Socket) error { return &ConnectError{Message: "no"} })
			w := h.dial()
			for range test.refused {
				w.write("40")
				w.want(refusal)
			}
			w.wantClosed()
		})
	}
	t.Run("no limit", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, Options{MaxConnectErrors: -1})
		w := h.dial()
		for range 20 {
			w.write("40/nowhere")
			w.want(`44/nowhere,{"message":"Invalid namespace"}`)
		}
	})
	t.Run("polling", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, Options{MaxConnectErrors: 2})
		h.url = strings.TrimSuffix(h.url, "&transport=websocket")
		c := dialPolling(h, t)
		c.send("40/nowhere\x1e40/elsewhere")
		for _, want := range []string{`44/nowhere,{"message":"Invalid namespace"}`, `44/elsewhere,{"message":"Invalid namespace"}`, "1"} {
			if got, _ := c.receive(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		c.ended()
	})
}
