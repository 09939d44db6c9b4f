package legacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/googollee/go-socket.io/engineio/session"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// subscriptions is an adapter that notes what it is subscribed to.
type subscriptions struct {
	socketio.Adapter
	mu    sync.Mutex
	rooms map[string]int
}

func (s *subscriptions) count(room string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rooms[room]
}

func (s *subscriptions) Subscribe(_ context.Context, rooms ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rooms {
		s.rooms[r]++
	}
	return nil
}

func (s *subscriptions) Unsubscribe(rooms ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rooms {
		s.rooms[r]--
	}
}

func (s *subscriptions) Close() error { return nil }

// pipe is a connection whose client reads when the test wants it to.
type pipe struct {
	id      string
	written chan string
	closed  chan struct{}
	once    sync.Once
}

func newPipe(id string) *pipe {
	return &pipe{id: id, written: make(chan string), closed: make(chan struct{})}
}

func (p *pipe) ID() string   { return p.id }
func (p *pipe) Close() error { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipe) NextReader() (session.FrameType, io.ReadCloser, error) {
	<-p.closed
	return 0, nil, io.EOF
}

func (p *pipe) NextWriter(session.FrameType) (io.WriteCloser, error) { return &message{pipe: p}, nil }

type message struct {
	strings.Builder
	pipe *pipe
}

func (m *message) Close() error {
	select {
	case m.pipe.written <- m.String():
		return nil
	case <-m.pipe.closed:
		return io.EOF
	}
}

func newTestHub(maxSockets int) (*hub, *subscriptions) {
	a := &subscriptions{rooms: make(map[string]int)}
	return newHub(func(socketio.Local) socketio.Adapter { return a }, maxSockets), a
}

func enter(t *testing.T, h *hub, id, room string) *pipe {
	t.Helper()
	p := newPipe(id)
	s := newSocket(p, room)
	if err := h.join(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.run() }()
	t.Cleanup(func() { h.leave(id); p.Close(); <-done })
	return p
}

func (p *pipe) next(t *testing.T) string {
	t.Helper()
	select {
	case m := <-p.written:
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("got nothing, want a message")
		return ""
	}
}

func broadcast(data string, rooms ...string) *socketio.Broadcast {
	return &socketio.Broadcast{Selection: socketio.Selection{Rooms: rooms}, Data: json.RawMessage(data)}
}

func TestHubDeliversOnceToTheRoom(t *testing.T) {
	t.Parallel()
	h, a := newTestHub(0)
	first, second, other := enter(t, h, "1", "a-b"), enter(t, h, "2", "a-b"), enter(t, h, "3", "a-c")
	for _, offset := range []uint64{7, 9, 9, 7} {
		b := broadcast(fmt.Sprintf(`["message",{"n":1},"%d"]`, offset), "a-b")
		metadata.Metadata{Offset: offset}.Put(b)
		h.HandleBroadcast(b)
	}
	for range 2 {
		h.HandleBroadcast(broadcast(`["other",1]`, "a-b"))
	}
	for _, p := range []*pipe{first, second} {
		for _, want := range []string{`["message",{"n":1},"7"]`, `["message",{"n":1},"9"]`, `["other",1]`, `["other",1]`} {
			if got := p.next(t); got != "2/message,"+want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	if n := h.HandleBroadcast(broadcast(`["x"]`, "a-c")); n != 1 {
		t.Errorf("got %d sockets, want 1", n)
	}
	if got := other.next(t); got != `2/message,["x"]` {
		t.Errorf("got %s, want only its own", got)
	}
	if n := h.HandleBroadcast(broadcast(`["x"]`, "nobody")); n != 0 {
		t.Errorf("got %d sockets of a room that is not there, want none", n)
	}
	h.leave("1")
	h.leave("1")
	h.leave("2")
	if got := a.count("a-b"); got != 0 {
		t.Errorf("got %d subscriptions of an empty room, want none", got)
	}
	if got := h.Rooms(); len(got) != 1 || got[0] != "a-c" {
		t.Errorf("got rooms %v, want only the one with a member", got)
	}
}

func TestHubBoundsARoom(t *testing.T) {
	t.Parallel()
	h, a := newTestHub(1)
	enter(t, h, "1", "a-b")
	if err := h.join(t.Context(), newSocket(newPipe("2"), "a-b")); !errors.Is(err, errTooMany) {
		t.Errorf("got %v, want that there are too many", err)
	}
	if got := a.count("a-b"); got != 1 {
		t.Errorf("got %d subscriptions, want 1", got)
	}
}

func TestHubDisconnects(t *testing.T) {
	t.Parallel()
	h, _ := newTestHub(0)
	for i, disconnect := range []func(room string){
		func(room string) {
			_ = h.Apply(t.Context(), socketio.Command{Selection: socketio.Selection{Rooms: []string{room}}, Disconnect: true})
		},
		func(room string) { h.disconnect(strings.TrimPrefix(room, "a-")) },
	} {
		p, stays := enter(t, h, string(rune('0'+i)), "a-b"), enter(t, h, string(rune('a'+i)), "a-xb")
		h.HandleBroadcast(broadcast(`["before"]`, "a-b"))
		disconnect("a-b")
		h.HandleBroadcast(broadcast(`["after"]`, "a-b", "a-xb"))
		if first, second := p.next(t), p.next(t); first != `2/message,["before"]` || second != "1/message" {
			t.Errorf("got %s and %s, want what was before and the disconnect", first, second)
		}
		<-p.closed
		if got := stays.next(t); got != `2/message,["after"]` {
			t.Errorf("got %s, want that others stay", got)
		}
		h.leave(p.id)
	}
}

func TestSlowClientIsClosedAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	h, _ := newTestHub(0)
	slow := enter(t, h, "slow", "a-b")
	big := `["` + strings.Repeat("x", maxQueued/8) + `"]`
	for range 10 {
		h.HandleBroadcast(broadcast(big, "a-b"))
	}
	select {
	case <-slow.closed:
	case <-time.After(10 * time.Second):
		t.Error("got an open client with a full queue, want it closed")
	}
}

func TestASCII(t *testing.T) {
	t.Parallel()
	in := `["å 漢 😀 \u2028 \\ end",1]`
	out := string(appendASCII(nil, []byte(in)))
	var want, got any
	if err := errors.Join(json.Unmarshal([]byte(in), &want), json.Unmarshal([]byte(out), &got)); err != nil {
		t.Fatal(err)
	}
	if got.([]any)[0] != want.([]any)[0] || strings.ContainsFunc(out, func(r rune) bool { return r > 126 }) {
		t.Errorf("got %s, want %s in ASCII", out, in)
	}
}

func TestVisitorHeader(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	want := visitor{Room: "a-b", ExpiresAt: time.Unix(1_800_000_000, 0).UTC()}
	want.put(header)
	if got := visitorOf(header); got.Room != want.Room || !got.ExpiresAt.Equal(want.ExpiresAt) || got.Refusal != nil {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, value := range []string{"", "nonsense", "e30=", "bnVsbA=="} {
		if got := visitorOf(http.Header{visitorHeader: {value}}); got.Refusal == nil {
			t.Errorf("got %+v of %q, want a refusal", got, value)
		}
	}
}

// A client that opens a session and does not come back: its connection ends, and the session that the library keeps is
// counted.
func TestAbandonedHandshakeIsCounted(t *testing.T) {
	t.Parallel()
	a := &subscriptions{rooms: make(map[string]int)}
	setup := Setup{PingInterval: 300 * time.Millisecond, PingTimeout: 200 * time.Millisecond, SessionPrefix: "x."}
	s := newServer(setup, func(socketio.Local) socketio.Adapter { return a }, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { s.close(); s.running.Wait() })
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/socket.io/?EIO=3&transport=polling&b64=1", nil))
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, `"sid":"x.`) || s.counts.open.Load() != 1 {
		t.Fatalf("got %d %s, want a session", w.Code, body)
	}
	timetest.Until(t, "no connections and one leaked session", func() bool { return s.counts.open.Load() == 0 && s.counts.leaked.Load() == 1 })
	if s.library.Count() != 1 {
		t.Errorf("got %d sessions in the library: it does forget them, and need not be counted", s.library.Count())
	}
}
