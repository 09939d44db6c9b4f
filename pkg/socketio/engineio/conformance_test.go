package engineio

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-chat/parley/pkg/socketio/internal/burn"
)

// The rows of this file test the statements of revision 4 of the Engine.IO protocol, and those of RFC 6455 that
// apply, with a raw client. Rows are independent of each other and of timing outside the server.

const (
	unknownSID = `{"code":1,"message":"Session ID unknown"}`
	patience   = time.Minute // far above what any row takes
)

type row struct {
	section, says string
	options       Options
	check         func(p *peer)
}

// slow and silent are the heartbeat settings for clients that answer pings, and for clients that do not.
var (
	slow   = Options{PingInterval: 50 * time.Millisecond, PingTimeout: 30 * time.Second}
	silent = Options{PingInterval: 40 * time.Millisecond, PingTimeout: 40 * time.Millisecond}
	small  = Options{MaxPayload: 1000}
)

func rows() []row {
	rows := []row{
		{section: "handshake", says: "over polling", check: func(p *peer) {
			res, body := p.exchange("GET", "EIO=4&transport=polling", "")
			p.wantOpen(body, "websocket")
			if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "text/plain; charset=UTF-8" {
				p.Errorf("got %d %q, want 200 and text/plain", res.StatusCode, got)
			}
		}},
		{section: "handshake", says: "over WebSocket", check: func(p *peer) {
			ws := p.dial("EIO=4&transport=websocket")
			p.wantOpen(ws.read())
		}},
		{section: "handshake", says: "each session has a sid of its own", check: func(p *peer) {
			if a, b := p.open(), p.open(); a == b {
				p.Errorf("got %q twice", a)
			}
		}},
		{section: "handshake", says: "any site may embed the client", check: func(p *peer) {
			res, _ := p.exchange("OPTIONS", "EIO=4&transport=polling", "")
			if got := res.Header.Get("Access-Control-Allow-Origin"); res.StatusCode != http.StatusNoContent || got != "*" {
				p.Errorf("got %d %q, want 204 and *", res.StatusCode, got)
			}
		}},
		{section: "heartbeat", says: "polling: a client that answers stays", options: slow, check: func(p *peer) {
			poll := p.open()
			for range 3 {
				p.want("GET", poll, "", 200, "2")
				p.want("POST", poll, "3", 200, "ok")
			}
		}},
		{section: "heartbeat", says: "WebSocket: a client that answers stays", options: slow, check: func(p *peer) {
			ws := p.openWebSocket()
			for range 3 {
				ws.want("2")
				ws.write("3")
			}
		}},
		{section: "heartbeat", says: "polling: a client that never polls is forgotten", options: silent, check: func(p *peer) {
			poll := p.open()
			time.Sleep(silent.PingInterval + silent.PingTimeout)
			p.want("GET", poll, "", 400, unknownSID)
		}},
		{section: "heartbeat", says: "polling: nor can it post", options: silent, check: func(p *peer) {
			poll := p.open()
			time.Sleep(silent.PingInterval + silent.PingTimeout)
			p.want("POST", poll, "4x", 400, unknownSID)
		}},
		{section: "heartbeat", says: "polling: the poll that waits is told, none after it", options: silent, check: func(p *peer) {
			poll := p.open()
			for _, want := range []string{"2", "1"} {
				switch status, body := p.request("GET", poll, ""); {
				case status == 400 && body == unknownSID: // this client was late
				case status != 200 || body != want:
					p.Errorf("got %d %q, want %s, or, past the end, an unknown sid", status, body, want)
				}
			}
			p.want("GET", poll, "", 400, unknownSID)
		}},
		{section: "heartbeat", says: "WebSocket: a client that does not answer is closed", options: silent, check: func(p *peer) {
			ws := p.openWebSocket()
			ws.want("2")
			ws.wantEnd()
			p.want("GET", polling(ws.sid), "", 400, unknownSID)
		}},
		{section: "heartbeat", says: "a pong that nobody asked for does no harm", check: func(p *peer) {
			poll, ws := p.open(), p.openWebSocket()
			p.want("POST", poll, "3\x1e4a", 200, "ok")
			p.want("GET", poll, "", 200, "4a")
			ws.write("3")
			ws.write("4a")
			ws.want("4a")
		}},
		{section: "payload", says: "the answer to a POST", check: func(p *peer) {
			res, body := p.exchange("POST", p.open(), "4a")
			if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || body != "ok" || got != "text/html" {
				p.Errorf("got %d %q %q, want 200, ok and text/html", res.StatusCode, body, got)
			}
		}},
		{section: "payload", says: "polling: the largest", options: small, check: func(p *peer) {
			poll, text := p.open(), "4"+strings.Repeat("x", 999)
			p.want("POST", poll, text, 200, "ok")
			p.want("GET", poll, "", 200, text)
		}},
		{section: "payload", says: "polling: larger than that", options: small, check: func(p *peer) {
			poll := p.open()
			if status, _ := p.request("POST", poll, "4"+strings.Repeat("x", 1000)); status != http.StatusRequestEntityTooLarge {
				p.Errorf("got %d, want 413", status)
			}
			p.want("GET", poll, "", 400, unknownSID)
		}},
		{section: "payload", says: "WebSocket: the largest", options: small, check: func(p *peer) {
			ws, text := p.openWebSocket(), "4"+strings.Repeat("x", 999)
			ws.write(text)
			ws.want(text)
		}},
		{section: "payload", says: "WebSocket: larger than that", options: small, check: func(p *peer) {
			ws := p.openWebSocket()
			ws.write("4" + strings.Repeat("x", 1000))
			ws.wantClose(1009)
			p.want("GET", polling(ws.sid), "", 400, unknownSID)
		}},
		{section: "payload", says: "WebSocket: binary messages", check: func(p *peer) {
			ws := p.openWebSocket()
			ws.frame(0x82, "\x01\x02\x03")
			ws.want("\x01\x02\x03")
		}},
		{section: "payload", says: "polling: a second poll ends both", check: func(p *peer) {
			poll := p.open()
			first, second := p.background(poll), p.background(poll)
			answers := map[string]int{<-first: 1}
			answers[<-second]++
			if answers["200 1"] != 1 || answers[`400 {"code":3,"message":"Bad request"}`]+answers["400 "+unknownSID] != 1 {
				p.Errorf("got %v, want one told and the other refused", answers)
			}
			p.want("GET", poll, "", 400, unknownSID)
		}},
		{section: "payload", says: "polling: a second POST ends the session", check: func(p *peer) {
			poll := p.open()
			body, write := io.Pipe()
			first := make(chan struct{})
			go func() {
				defer close(first)
				p.send("POST", poll, body)
			}()
			_, _ = io.WriteString(write, "4") // the request is on its way, its body is not
			for {                             // until the server has begun to read it
				if status, body := p.request("POST", poll, "4x"); status != 200 {
					// If the first request came while one of these was being read, it was the one that ended the session.
					if status != 400 || !strings.Contains(body, "Bad request") && body != unknownSID {
						p.Errorf("got %d %q, want 400", status, body)
					}
					break
				}
			}
			p.want("GET", poll, "", 400, unknownSID)
			write.Close()
			<-first
		}},
		{section: "close", says: "polling: the waiting poll gets a noop, and the sid is unknown at once", check: func(p *peer) {
			poll := p.open()
			waiting := p.waiting(poll)
			p.want("POST", poll, "1", 200, "ok")
			p.want("GET", poll, "", 400, unknownSID)
			p.want("POST", poll, "4x", 400, unknownSID)
			if got := <-waiting; got != "200 6" {
				p.Errorf("got %q, want a noop", got)
			}
		}},
		{section: "close", says: "polling: without a waiting poll", check: func(p *peer) {
			poll := p.open()
			p.want("POST", poll, "4a\x1e1", 200, "ok")
			p.want("GET", poll, "", 200, "6") // it may have been sent before
			p.want("GET", poll, "", 400, unknownSID)
		}},
		{section: "close", says: "WebSocket: the close packet", check: func(p *peer) {
			ws := p.openWebSocket()
			ws.write("1")
			ws.wantEnd()
			p.want("GET", polling(ws.sid), "", 400, unknownSID)
		}},
		{section: "close", says: "WebSocket: the close frame is answered", check: func(p *peer) {
			ws := p.openWebSocket()
			ws.frame(0x88, "\x03\xe8")
			ws.wantClose(1000)
			p.want("GET", polling(ws.sid), "", 400, unknownSID)
		}},
		{section: "close", says: "polling: by the server, the waiting poll is told", check: func(p *peer) {
			poll := p.open()
			waiting := p.waiting(poll)
			p.session().Close()
			p.want("GET", poll, "", 400, unknownSID)
			if got := <-waiting; got != "200 1" {
				p.Errorf("got %q, want a close", got)
			}
		}},
		{section: "close", says: "polling: by the server, what was sent before arrives", check: func(p *peer) {
			poll := p.open()
			s := p.session()
			_ = s.Send(NewMessage([]byte("bye")))
			s.Close()
			p.want("GET", poll, "", 200, "4bye")
			p.want("GET", poll, "", 200, "1")
			p.want("GET", poll, "", 400, unknownSID)
		}},
		{section: "close", says: "WebSocket: by the server", check: func(p *peer) {
			ws := p.openWebSocket()
			p.session().Close()
			ws.wantClose(1000)
			p.want("GET", polling(ws.sid), "", 400, unknownSID)
		}},
		{section: "upgrade", says: "the poll that waits gets a noop, what was queued follows", check: func(p *peer) {
			poll := p.open()
			waiting := p.waiting(poll)
			ws := p.probe(poll)
			if got := <-waiting; got != "200 6" {
				p.Errorf("got %q, want a noop", got)
			}
			p.want("POST", poll, "4queued", 200, "ok")
			ws.write("5")
			ws.want("4queued")
			ws.write("4hello")
			ws.want("4hello")
		}},
		{section: "upgrade", says: "a poll between probe and upgrade gets a noop", check: func(p *peer) {
			poll := p.open()
			ws := p.probe(poll)
			p.want("GET", poll, "", 200, "6")
			ws.write("5")
			ws.write("4a")
			ws.want("4a")
		}},
		{section: "upgrade", says: "a poll sent after the upgrade packet is late", check: func(p *peer) {
			poll := p.open()
			ws := p.probe(poll)
			ws.write("5")
			p.want("GET", poll, "", 400, unknownSID)
			ws.write("4a")
			ws.want("4a")
		}},
		{section: "upgrade", says: "and so it is if something is queued", check: func(p *peer) {
			poll := p.open()
			ws := p.probe(poll)
			p.want("POST", poll, "4queued", 200, "ok")
			ws.write("5")
			p.want("GET", poll, "", 400, unknownSID)
			ws.want("4queued")
		}},
		{section: "upgrade", says: "the old transport is over", check: func(p *peer) {
			poll := p.open()
			ws := p.probe(poll)
			ws.write("5")
			ws.write("4a")
			ws.want("4a")
			p.want("GET", poll, "", 400, unknownSID)
			p.want("POST", poll, "4x", 400, unknownSID)
			ws.write("4b")
			ws.want("4b")
		}},
		{section: "upgrade", says: "another WebSocket is accepted and closed, during the upgrade and after it", check: func(p *peer) {
			poll := p.open()
			ws := p.probe(poll)
			p.dial(upgrading(poll)).wantClose(1000)
			ws.write("5")
			ws.write("4a")
			ws.want("4a")
			p.dial(upgrading(poll)).wantClose(1000)
			ws.write("4b")
			ws.want("4b")
		}},
		{section: "upgrade", says: "so is one for a session that began on WebSocket", check: func(p *peer) {
			ws := p.openWebSocket()
			p.dial("EIO=4&transport=websocket&sid=" + ws.sid).wantClose(1000)
			p.want("GET", polling(ws.sid), "", 400, unknownSID)
			ws.write("4a")
			ws.want("4a")
		}},
		{section: "upgrade", says: "one that is lost leaves polling as it was", check: func(p *peer) {
			poll := p.open()
			ws := p.probe(poll)
			ws.conn.Close()
			p.want("POST", poll, "4a", 200, "ok")
			if got := p.next(poll); got != "4a" {
				p.Errorf("got %q, want the echo", got)
			}
		}},
		{section: "upgrade", says: "a session that has ended cannot", check: func(p *peer) {
			poll := p.open()
			p.want("POST", poll, "1", 200, "ok")
			p.wantRefusedWebSocket(upgrading(poll), unknownSID)
		}},
		{section: "frames", says: "a ping is answered with its data", check: func(p *peer) {
			ws := p.openWebSocket()
			ws.frame(0x89, "data")
			if op, data := ws.readFrame(); op != 0x8a || data != "data" {
				p.Errorf("got %x %q, want a pong with the data", op, data)
			}
		}},
		{section: "frames", says: "fragments, with a ping between them", check: func(p *peer) {
			ws := p.openWebSocket()
			ws.frame(0x01, "4he")
			ws.frame(0x89, "")
			ws.frame(0x00, "ll")
			ws.frame(0x80, "o")
			if op, _ := ws.readFrame(); op != 0x8a {
				p.Errorf("got %x, want a pong", op)
			}
			ws.want("4hello")
		}},
	}
	for _, bad := range []struct{ query, method, refusal string }{
		{"transport=polling", "GET", `{"code":5,"message":"Unsupported protocol version"}`},
		{"EIO=3&transport=polling", "GET", `{"code":5,"message":"Unsupported protocol version"}`},
		{"EIO=abc&transport=polling", "GET", `{"code":5,"message":"Unsupported protocol version"}`},
		{"EIO=4", "GET", `{"code":0,"message":"Transport unknown"}`},
		{"EIO=4&transport=abc", "GET", `{"code":0,"message":"Transport unknown"}`},
		{"EIO=4&transport=polling", "POST", `{"code":2,"message":"Bad handshake method"}`},
		{"EIO=4&transport=polling", "PUT", `{"code":2,"message":"Bad handshake method"}`},
		{"EIO=4&transport=websocket", "GET", `{"code":3,"message":"Bad request"}`},
		{"EIO=4&transport=polling&sid=none", "GET", unknownSID},
		{"EIO=4&transport=polling&sid=none", "POST", unknownSID},
		{"EIO=4&transport=websocket&sid=none", "GET", unknownSID},
	} {
		rows = append(rows, row{section: "handshake", says: "refused: " + bad.method + " " + bad.query, check: func(p *peer) {
			res, body := p.exchange(bad.method, bad.query, "4x")
			if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusBadRequest || strings.TrimSpace(body) != bad.refusal || got != "application/json" {
				p.Errorf("got %d %q %q, want 400 %s", res.StatusCode, got, body, bad.refusal)
			}
		}})
	}
	for query, refusal := range map[string]string{
		"transport=websocket":                `{"code":5,"message":"Unsupported protocol version"}`,
		"EIO=4&transport=abc":                `{"code":0,"message":"Transport unknown"}`,
		"EIO=4&transport=websocket&sid=none": unknownSID,
	} {
		rows = append(rows, row{section: "handshake", says: "refused WebSocket: " + query, check: func(p *peer) { p.wantRefusedWebSocket(query, refusal) }})
	}
	for _, payload := range []string{"4hello", "4", "4a\x1e4b\x1e4c", "4€ÿ\U0001F600", "bAQIDBA==", "4text\x1ebAQIDBA==\x1e4text", "4\"\\\n\x00"} {
		rows = append(rows, row{section: "payload", says: fmt.Sprintf("polling: %q", payload), check: func(p *peer) {
			poll := p.open()
			p.want("POST", poll, payload, 200, "ok")
			p.want("GET", poll, "", 200, payload)
		}})
	}
	for _, text := range []string{"4hello", "4", "4€ÿ\U0001F600", "4a\x1e4b"} {
		rows = append(rows, row{section: "payload", says: fmt.Sprintf("WebSocket: %q", text), check: func(p *peer) {
			ws := p.openWebSocket()
			ws.write(text)
			ws.want(text)
		}})
	}
	for _, payload := range []string{"", "abc", "7", "\x1e", "4a\x1e", "\x1e4a", "4a\x1eabc", "b!!!", "4\xff", "2", "2probe"} {
		rows = append(rows, row{section: "malformed", says: fmt.Sprintf("polling: %q ends the session at once", payload), check: func(p *peer) {
			poll := p.open()
			p.want("POST", poll, payload, 400, `{"code":3,"message":"Bad request"}`)
			p.want("GET", poll, "", 400, unknownSID)
			p.want("POST", poll, "4x", 400, unknownSID)
		}}, row{section: "malformed", says: fmt.Sprintf("polling: %q, the poll that waits is told", payload), check: func(p *peer) {
			poll := p.open()
			waiting := p.waiting(poll)
			p.want("POST", poll, payload, 400, `{"code":3,"message":"Bad request"}`)
			p.want("GET", poll, "", 400, unknownSID)
			if got := <-waiting; got != "200 1" && (!strings.HasPrefix(payload, "4a") || !strings.HasPrefix(got, "200 4a")) {
				p.Errorf("got %q, want a close", got)
			}
		}})
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH"} {
		rows = append(rows, row{section: "malformed", says: "polling: " + method, check: func(p *peer) {
			poll := p.open()
			p.want(method, poll, "4x", 400, `{"code":2,"message":"Bad handshake method"}`)
			p.want("POST", poll, "4x", 200, "ok")
		}})
	}
	for _, bad := range []struct {
		says  string
		bytes func(*socket)
		code  int
	}{
		{"no packet", func(ws *socket) { ws.write("") }, 1000},
		{"an unknown packet", func(ws *socket) { ws.write("abc") }, 1000},
		{"a packet type out of range", func(ws *socket) { ws.write("7") }, 1000},
		{"a ping packet", func(ws *socket) { ws.write("2") }, 1000},
		{"text that is not UTF-8", func(ws *socket) { ws.write("4\xff") }, 1007},
		{"a frame without a mask", func(ws *socket) { ws.raw("\x81\x024a") }, 1002},
		{"reserved bits", func(ws *socket) { ws.frame(0xb1, "4a") }, 1002},
		{"a compressed frame that was not agreed", func(ws *socket) { ws.frame(0xc1, "4a") }, 1002},
		{"a reserved opcode", func(ws *socket) { ws.frame(0x83, "4a") }, 1002},
		{"a long control frame", func(ws *socket) { ws.frame(0x89, strings.Repeat("x", 126)) }, 1002},
		{"a fragmented control frame", func(ws *socket) { ws.frame(0x09, "") }, 1002},
		{"a continuation of nothing", func(ws *socket) { ws.frame(0x80, "4a") }, 1002},
		{"a message inside another", func(ws *socket) { ws.frame(0x01, "4a"); ws.frame(0x81, "4b") }, 1002},
	} {
		rows = append(rows, row{section: "malformed", says: "WebSocket: " + bad.says, check: func(p *peer) {
			ws := p.openWebSocket()
			bad.bytes(ws)
			ws.wantClose(bad.code)
			p.want("GET", polling(ws.sid), "", 400, unknownSID)
		}})
	}
	for _, first := range []string{"5", "4x", "2", "2other", "3probe", "", "abc"} {
		rows = append(rows, row{section: "upgrade", says: fmt.Sprintf("a probe that begins with %q fails, polling goes on", first), check: func(p *peer) {
			poll := p.open()
			ws := p.dial(upgrading(poll))
			ws.write(first)
			ws.wantEnd()
			p.want("POST", poll, "4a", 200, "ok")
			p.want("GET", poll, "", 200, "4a")
		}})
	}
	return rows
}

func TestConformance(t *testing.T) {
	t.Parallel()
	runRows(t)
}

// TestConformanceUnderLoad repeats the suite on busy processors.
func TestConformanceUnderLoad(t *testing.T) { burn.Repeat(t, runRows) }

func runRows(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.section+"/"+r.says, func(t *testing.T) {
			t.Parallel()
			r.check(newPeer(t, r.options))
		})
	}
}

// peer is a raw client with an echo server.
type peer struct {
	*testing.T
	addr, url string
	client    *http.Client
	sessions  chan *Session
}

type echo struct{ s *Session }

func (e echo) OnMessage(data []byte, binary bool) error {
	if binary {
		m := &Message{}
		m.addBinary(data)
		_ = e.s.Send(m)
		return nil
	}
	_ = e.s.Send(NewMessage(data))
	return nil
}

func (e echo) OnClose(Reason) {}

func newPeer(t *testing.T, opts Options) *peer {
	p := &peer{T: t, sessions: make(chan *Session, 16), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	srv := NewServer(opts, func(s *Session) Handler {
		s.Confirm()
		p.sessions <- s
		return echo{s}
	})
	hs := httptest.NewServer(srv)
	p.addr, p.url = hs.Listener.Addr().String(), hs.URL+"/engine.io/?"
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("closing the server: %v", err)
		}
		p.client.CloseIdleConnections()
		hs.Close()
	})
	return p
}

func (p *peer) session() *Session { return <-p.sessions }

// send sends a request; it returns status 0 if that fails.
func (p *peer) send(method, query string, body io.Reader) (*http.Response, string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, p.url+query, body)
	if err != nil {
		return &http.Response{}, err.Error()
	}
	res, err := p.client.Do(req)
	if err != nil {
		return &http.Response{}, err.Error()
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return &http.Response{}, err.Error()
	}
	return res, string(data)
}

func (p *peer) exchange(method, query, body string) (*http.Response, string) {
	return p.send(method, query, strings.NewReader(body))
}

func (p *peer) request(method, query, body string) (int, string) {
	res, answer := p.exchange(method, query, body)
	return res.StatusCode, strings.TrimSuffix(answer, "\n")
}

func (p *peer) want(method, query, body string, status int, answer string) {
	p.Helper()
	if gotStatus, got := p.request(method, query, body); gotStatus != status || got != answer {
		p.Errorf("%s of %q: got %d %q, want %d %q", method, body, gotStatus, got, status, answer)
	}
}

// background starts a poll in the background.
func (p *peer) background(poll string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		status, body := p.request("GET", poll, "")
		answer <- fmt.Sprint(status, " ", body)
	}()
	return answer
}

// waiting starts a poll and returns when it is waiting in the session.
func (p *peer) waiting(poll string) <-chan string {
	p.Helper()
	s := p.session()
	p.sessions <- s
	answer := p.background(poll)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		waits := s.poll != nil
		s.mu.Unlock()
		if waits {
			return answer
		}
		if time.Now().After(deadline) {
			p.Fatal("got a response to the poll, want it to wait")
		}
	}
}

// next polls until it gets a packet other than noop.
func (p *peer) next(poll string) string {
	for {
		if status, body := p.request("GET", poll, ""); status != 200 || body != "6" {
			return body
		}
	}
}

func polling(sid string) string { return "EIO=4&transport=polling&sid=" + sid }

func upgrading(poll string) string { return strings.Replace(poll, "polling", "websocket", 1) }

// wantOpen checks an open packet and returns its sid.
func (p *peer) wantOpen(text string, upgrades ...string) string {
	p.Helper()
	var open struct {
		SID                                   string
		Upgrades                              []string
		PingInterval, PingTimeout, MaxPayload int
	}
	data, ok := strings.CutPrefix(text, "0")
	if err := json.Unmarshal([]byte(data), &open); err != nil || !ok || open.SID == "" || open.Upgrades == nil ||
		fmt.Sprint(open.Upgrades) != fmt.Sprint(upgrades) || open.PingInterval <= 0 || open.PingTimeout <= 0 || open.MaxPayload <= 0 {
		p.Fatalf("got %q, want an open packet with the upgrades %v", text, upgrades)
	}
	return open.SID
}

// open returns the query of a new session's polls.
func (p *peer) open() string {
	p.Helper()
	_, body := p.request("GET", "EIO=4&transport=polling", "")
	return polling(p.wantOpen(body, "websocket"))
}

// probe opens a WebSocket and completes its probe.
func (p *peer) probe(poll string) *socket {
	p.Helper()
	ws := p.dial(upgrading(poll))
	ws.write("2probe")
	ws.want("3probe")
	return ws
}

func (p *peer) wantRefusedWebSocket(query, refusal string) {
	p.Helper()
	_, res, err := websocket.Dial(p.Context(), p.url+query, &websocket.DialOptions{HTTPClient: p.client})
	if err == nil || res == nil || res.StatusCode != http.StatusBadRequest {
		p.Fatalf("got %v, want 400", err)
	}
	if body, _ := io.ReadAll(res.Body); strings.TrimSpace(string(body)) != refusal {
		p.Errorf("got %s, want %s", body, refusal)
	}
}

// socket is a WebSocket with raw frames.
type socket struct {
	p    *peer
	conn net.Conn
	sid  string
}

func (p *peer) dial(query string) *socket {
	p.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	ws := &socket{p: p, conn: conn}
	ws.raw("GET /engine.io/?" + query + " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	var head string
	for !strings.HasSuffix(head, "\r\n\r\n") {
		head += ws.take(1)
	}
	if !strings.HasPrefix(head, "HTTP/1.1 101 ") || !strings.Contains(head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") {
		p.Fatalf("got %q, want 101", head)
	}
	return ws
}

func (p *peer) openWebSocket() *socket {
	p.Helper()
	ws := p.dial("EIO=4&transport=websocket")
	ws.sid = p.wantOpen(ws.read())
	return ws
}

func (ws *socket) raw(s string) {
	if _, err := io.WriteString(ws.conn, s); err != nil {
		ws.p.Logf("writing: %v", err) // the server may have closed already
	}
}

// frame writes a masked frame with the given first byte.
func (ws *socket) frame(first byte, data string) {
	b := []byte{first, 0x80}
	if len(data) > 125 {
		b = binary.BigEndian.AppendUint16([]byte{first, 0x80 | 126}, uint16(len(data)))
	} else {
		b[1] |= byte(len(data))
	}
	mask := [4]byte{1, 2, 3, 4}
	b = append(b, mask[:]...)
	for i := range len(data) {
		b = append(b, data[i]^mask[i%4])
	}
	ws.raw(string(b))
}

func (ws *socket) write(text string) { ws.frame(0x81, text) }

// take reads n bytes, or none at the end of the connection.
func (ws *socket) take(n int) string {
	b := make([]byte, n)
	_, err := io.ReadFull(ws.conn, b)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		ws.p.Fatal("got no bytes, want some")
	case err != nil:
		return ""
	}
	return string(b)
}

// readFrame returns 0 at the end of the connection.
func (ws *socket) readFrame() (first byte, data string) {
	head := ws.take(2)
	if head == "" {
		return 0, ""
	}
	n := int(head[1])
	if n == 126 {
		more := ws.take(2)
		n = int(more[0])<<8 | int(more[1])
	}
	if n > 0 {
		data = ws.take(n)
	}
	return head[0], data
}

func (ws *socket) read() string {
	_, data := ws.readFrame()
	return data
}

func (ws *socket) want(text string) {
	ws.p.Helper()
	if first, got := ws.readFrame(); got != text || first != 0x81 && first != 0x82 {
		ws.p.Errorf("got %x %q, want %q", first, got, text)
	}
}

// wantClose skips pings and requires a close frame and the end of the connection.
func (ws *socket) wantClose(code int) {
	ws.p.Helper()
	first, data := ws.readFrame()
	if first != 0x88 || len(data) != 2 || int(data[0])<<8|int(data[1]) != code {
		ws.p.Errorf("got %x %q, want a close frame with %d", first, data, code)
		return
	}
	ws.wantEnd()
}

func (ws *socket) wantEnd() {
	ws.p.Helper()
	for {
		first, data := ws.readFrame()
		switch {
		case first == 0:
			return
		case first != 0x88 && data != "2":
			ws.p.Errorf("got %x %q, want the end", first, data)
			return
		}
	}
}
