package engineio

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// harness is an echo server that records its sessions.
type harness struct {
	t      *testing.T
	srv    *Server
	client *http.Client
	url    string
	opened chan *Session
	closed chan Reason

	dialRaw func() (net.Conn, error) // in virtual time only
}

type echoHandler struct {
	h *harness
	s *Session
}

func (e echoHandler) OnMessage(data []byte, binary bool) error {
	if binary {
		m := &Message{}
		m.addBinary(data)
		_ = e.s.Send(m)
		return nil
	}
	_ = e.s.Send(NewMessage(data))
	return nil
}

func (e echoHandler) OnClose(reason Reason) { e.h.closed <- reason }

func newEcho(t *testing.T, opts Options) *harness {
	h := &harness{t: t, opened: make(chan *Session, 64), closed: make(chan Reason, 64)}
	h.srv = NewServer(opts, func(s *Session) Handler {
		h.opened <- s
		return echoHandler{h, s}
	})
	return h
}

func newHarness(t *testing.T, opts Options) *harness {
	h := newEcho(t, opts)
	h.client = http.DefaultClient
	hs := httptest.NewServer(h.srv)
	h.url = hs.URL + "/engine.io/?EIO=4"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.srv.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		hs.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return h
}

// request returns the status and the body.
func (h *harness) request(method, query, body string) (int, string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+query, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	res, err := h.client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

func (h *harness) want(method, query, body string, status int, answer string) {
	h.t.Helper()
	gotStatus, gotAnswer := h.request(method, query, body)
	if gotStatus != status || gotAnswer != answer {
		h.t.Fatalf("%s %s: got %d %q, want %d %q", method, query, gotStatus, gotAnswer, status, answer)
	}
}

// wantRefusal requires an error response of the protocol.
func (h *harness) wantRefusal(method, query, body string, status, code int) {
	h.t.Helper()
	gotStatus, answer := h.request(method, query, body)
	var got struct {
		Code    int
		Message string
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || gotStatus != status || got.Code != code || got.Message == "" {
		h.t.Fatalf("%s %s: got %d %q, want %d with code %d", method, query, gotStatus, answer, status, code)
	}
}

// openPolling returns the query of a new polling session.
func (h *harness) openPolling() (query string, s *Session) {
	h.t.Helper()
	status, body := h.request(http.MethodGet, "&transport=polling", "")
	var open struct {
		SID                                   string
		Upgrades                              []string
		PingInterval, PingTimeout, MaxPayload int
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(body, "0")), &open); err != nil || status != 200 || open.SID == "" || len(open.Upgrades) != 1 || open.MaxPayload == 0 {
		h.t.Fatalf("got %d %q, want an open packet", status, body)
	}
	return "&transport=polling&sid=" + open.SID, <-h.opened
}

func (h *harness) dial(query string) (*websocket.Conn, *http.Response, error) {
	conn, res, err := websocket.Dial(h.t.Context(), h.url+query, &websocket.DialOptions{HTTPClient: h.client})
	if err == nil {
		conn.SetReadLimit(1 << 24)
		h.t.Cleanup(func() { conn.CloseNow() })
	}
	return conn, res, err
}

func (h *harness) openWebSocket() (*websocket.Conn, *Session) {
	h.t.Helper()
	conn, _, err := h.dial("&transport=websocket")
	if err != nil {
		h.t.Fatal(err)
	}
	if got := h.read(conn); !strings.HasPrefix(got, `0{"sid":"`) || !strings.Contains(got, `"upgrades":[]`) {
		h.t.Fatalf("got %q, want an open packet", got)
	}
	return conn, <-h.opened
}

func (h *harness) read(conn *websocket.Conn) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Second)
	defer cancel()
	_, data, err := conn.Read(ctx)
	if err != nil {
		h.t.Fatalf("reading: %v", err)
	}
	return string(data)
}

func (h *harness) write(conn *websocket.Conn, text string) {
	h.t.Helper()
	if err := conn.Write(h.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		h.t.Fatalf("writing: %v", err)
	}
}

func (h *harness) wantClosed(want Reason) {
	h.t.Helper()
	select {
	case got := <-h.closed:
		if got != want {
			h.t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		h.t.Fatalf("not closed, want %q", want)
	}
}

// wantNothingBuffered waits until nothing is buffered: the writer may update the count after the client has read.
func (h *harness) wantNothingBuffered(s *Session) {
	h.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); s.Buffered() != 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			h.t.Fatalf("got %d bytes buffered, want none", s.Buffered())
		}
	}
}

func TestHandshakeErrors(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	h.wantRefusal("GET", "", "", 400, 0)
	h.wantRefusal("GET", "&transport=abc", "", 400, 0)
	h.wantRefusal("GET", "&transport=polling&sid=unknown", "", 400, 1)
	h.wantRefusal("GET", "&transport=websocket&sid=unknown", "", 400, 1)
	h.wantRefusal("POST", "&transport=polling", "", 400, 2)
	h.wantRefusal("PUT", "&transport=polling", "", 400, 2)
	h.wantRefusal("GET", "&transport=websocket", "", 400, 3)
	base := h.url
	for _, version := range []string{"", "?EIO=abc", "?EIO=3"} {
		h.url = strings.TrimSuffix(base, "?EIO=4") + version
		if version == "" {
			h.url += "?"
		}
		h.wantRefusal("GET", "&transport=polling", "", 400, 5)
	}
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{MaxSessions: 1, CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") != "http://bad" }})
	h.openPolling()
	h.wantRefusal("GET", "&transport=polling", "", 503, 4)
	req, _ := http.NewRequest(http.MethodGet, h.url+"&transport=polling", nil)
	req.Header.Set("Origin", "http://bad")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden || res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("got %d %v, want 403", res.StatusCode, res.Header)
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	req, _ := http.NewRequest(http.MethodOptions, h.url+"&transport=polling", nil)
	req.Header.Set("Origin", "https://shop.example")
	req.Header.Set("Access-Control-Request-Headers", "x-extra")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent || res.Header.Get("Access-Control-Allow-Origin") != "*" || res.Header.Get("Access-Control-Allow-Headers") != "x-extra" || res.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("got %d %v", res.StatusCode, res.Header)
	}
}

func TestPollingMessages(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	q, _ := h.openPolling()
	for _, payload := range []string{"4hello", "4test1\x1e4test2\x1e4test3", "4hello\x1ebAQIDBA=="} {
		h.want("POST", q, payload, 200, "ok")
		h.want("GET", q, "", 200, payload)
	}
}

func TestPollingInvalidPacket(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	q, _ := h.openPolling()
	h.wantRefusal("POST", q, "abc", 400, 3)
	h.wantClosed(ReasonParseError)
	h.wantRefusal("GET", q, "", 400, 1)
}

func TestPollingTooLarge(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{MaxPayload: 100})
	q, _ := h.openPolling()
	if status, _ := h.request("POST", q, "4"+strings.Repeat("x", 100)); status != 413 {
		t.Errorf("got %d, want 413", status)
	}
	h.wantClosed(ReasonTransportError)
}

func TestServerCloseReachesThePoll(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	q, s := h.openPolling()
	_ = s.Send(NewMessage([]byte("bye")))
	s.Close()
	h.wantClosed(ReasonForced)
	h.want("GET", q, "", 200, "4bye")
	h.want("GET", q, "", 200, "1")
	if total, _ := h.srv.SessionCount(); total != 0 {
		t.Errorf("got %d sessions, want none", total)
	}
}

func TestWebSocketMessages(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	conn, s := h.openWebSocket()
	for _, text := range []string{"4hello", "4", "4" + strings.Repeat("x", 500_000)} {
		h.write(conn, text)
		if got := h.read(conn); got != text {
			t.Fatalf("got %d bytes, want %d", len(got), len(text))
		}
	}
	if err := conn.Write(t.Context(), websocket.MessageBinary, []byte{1, 2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	if got := h.read(conn); got != "\x01\x02\x03\x04" {
		t.Errorf("got %q", got)
	}
	conn.CloseRead(t.Context())
	if err := conn.Ping(t.Context()); err != nil {
		t.Errorf("WebSocket ping: %v", err)
	}
	s.Close()
	h.wantClosed(ReasonForced)
}

func TestWebSocketBreaches(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{MaxPayload: 1000})
	for text, want := range map[string]Reason{
		"abc":                             ReasonParseError,
		"":                                ReasonParseError,
		"1":                               ReasonTransportClose,
		"2":                               ReasonTransportError,
		"4" + strings.Repeat("x", 100000): ReasonTransportError,
	} {
		conn, _ := h.openWebSocket()
		_ = conn.Write(t.Context(), websocket.MessageText, []byte(text)) // may be cut
		h.wantClosed(want)
		if _, _, err := conn.Read(t.Context()); err == nil {
			t.Errorf("%.10q: got an open connection, want it closed", text)
		}
	}
}

// TestSlowReader has one client that does not read and one that does.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{SendBuffer: 1 << 20, WriteTimeout: time.Minute})
	_, slow := h.openWebSocket()
	fast, fastSession := h.openWebSocket()
	m := NewMessage(make([]byte, 64<<10))
	longest := time.Duration(0)
	for range 1000 {
		start := time.Now()
		err := slow.Send(m)
		longest = max(longest, time.Since(start))
		if err != nil {
			if !errors.Is(err, ErrSlow) {
				t.Fatalf("got %v, want ErrSlow", err)
			}
			h.wantClosed(ReasonSlow)
			if longest > 10*time.Second { // of the minute that a write may stall
				t.Errorf("a send took %v", longest)
			}
			_ = fastSession.Send(NewMessage([]byte("alive")))
			if got := h.read(fast); got != "4alive" {
				t.Errorf("got %q", got)
			}
			return
		}
	}
	t.Fatal("got the slow session open, want it closed")
}

// TestOrder sends from several goroutines through a full socket and checks that the messages of each
// arrive complete and in order.
func TestOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{SendBuffer: 1 << 26})
	conn, s := h.openWebSocket()
	const senders, each = 4, 300
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for j := range each {
				body := append([]byte{byte('a' + i), byte(j), byte(j >> 8)}, make([]byte, 3000)...)
				m := &Message{}
				m.addBinary(body)
				if err := s.Send(m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := map[byte]int{}
	for range senders * each {
		got := h.read(conn)
		n := int(got[1]) | int(got[2])<<8
		if len(got) != 3003 || next[got[0]] != n {
			t.Fatalf("got number %d of %c, want %d", n, got[0], next[got[0]])
		}
		next[got[0]]++
	}
	wg.Wait()
	h.wantNothingBuffered(s)
}

func TestLastWordsArrive(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{SendBuffer: 1 << 26})
	conn, s := h.openWebSocket()
	big := make([]byte, 4<<20)
	for range 3 {
		if err := s.Send(NewMessage(big)); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	if err := s.Send(NewMessage(nil)); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	for range 3 {
		if got := h.read(conn); len(got) != len(big)+1 {
			t.Fatalf("got %d bytes", len(got))
		}
	}
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("got %v, want a normal closure", err)
	}
}

func TestForward(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{Forward: func(w http.ResponseWriter, _ *http.Request, sid string) bool {
		if sid != "elsewhere" {
			return false
		}
		_, _ = io.WriteString(w, "forwarded")
		return true
	}})
	h.want("GET", "&transport=polling&sid=elsewhere", "", 200, "forwarded")
	h.wantRefusal("GET", "&transport=polling&sid=nowhere", "", 400, 1)
}

func TestRequestIsCompact(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{KeepHeaders: []string{"user-agent"}})
	_, s := h.openPolling()
	if got := s.Request().Header(); len(got) != 1 || got.Get("User-Agent") == "" {
		t.Errorf("got %v, want the User-Agent only", got)
	}
	if got := s.Request().Query().Get("EIO"); got != "4" {
		t.Errorf("got %q", got)
	}
}

func TestWheelFiresInTime(t *testing.T) {
	t.Parallel()
	w := newWheel(10 * time.Millisecond)
	w.start = time.Now().Add(-50 * time.Millisecond)
	w.hand = 5
	near, far, gone := &Session{}, &Session{}, &Session{}
	w.schedule(near, 70*time.Millisecond)
	w.schedule(far, 70*time.Millisecond+wheelSlots*w.tick) // the same slot, a turn later
	w.schedule(gone, 70*time.Millisecond)
	w.remove(gone)
	w.start = time.Now().Add(-65 * time.Millisecond)
	if due := w.advance(nil); len(due) != 0 {
		t.Errorf("got %d early", len(due))
	}
	w.start = time.Now().Add(-85 * time.Millisecond)
	if due := w.advance(nil); len(due) != 1 || due[0] != near {
		t.Errorf("got %d due, want the near one", len(due))
	}
	w.start = time.Now().Add(-90*time.Millisecond - wheelSlots*w.tick)
	if due := w.advance(nil); len(due) != 1 || due[0] != far {
		t.Errorf("got %d due, want the far one", len(due))
	}
}
