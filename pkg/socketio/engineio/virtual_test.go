package engineio

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// inBubble runs test in virtual time, with a server on pipes: time does not advance while goroutines block on
// sockets. synctest.Wait returns when all goroutines are blocked, for example in a waiting poll.
func inBubble(t *testing.T, opts Options, test func(t *testing.T, h *harness)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newEcho(t, opts)
		h.srv.poller.stop() // waits in the system
		h.srv.poller = nil
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		hs := &http.Server{Handler: h.srv}
		go hs.Serve(l)
		transport := &http.Transport{DialContext: l.dial}
		h.dialRaw = func() (net.Conn, error) { return l.dial(t.Context(), "", "") }
		h.client, h.url = &http.Client{Transport: transport}, "http://pipe/engine.io/?EIO=4"
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := h.srv.Shutdown(ctx); err != nil {
				t.Errorf("shutdown: %v", err)
			}
			hs.Close()
			transport.CloseIdleConnections()
		})
		test(t, h)
	})
}

// pipeListener accepts pipes.
type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// wantSince checks the time of an event with the precision of the wheel's tick.
func wantSince(t *testing.T, what string, start time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(start); got < want || got > want+200*time.Millisecond {
		t.Errorf("%s after %v, want %v", what, got, want)
	}
}

func TestHeartbeatOverPolling(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *harness) {
		q, s := h.openPolling()
		s.Confirm()
		start := time.Now()
		for range 3 {
			h.want("GET", q, "", 200, "2")
			wantSince(t, "ping", start, 25*time.Second)
			time.Sleep(3 * time.Second)
			h.want("POST", q, "3", 200, "ok")
			start = time.Now()
		}
		time.Sleep(25*time.Second + 19*time.Second)
		h.wantOpen()
		h.wantClosed(ReasonPingTimeout)
		wantSince(t, "close", start, 45*time.Second)
		h.wantRefusal("GET", q, "", 400, 1)
	})
}

func TestHeartbeatOverWebSocket(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *harness) {
		conn, s := h.openWebSocket()
		s.Confirm()
		start := time.Now()
		for range 3 {
			if _, data, err := conn.Read(t.Context()); err != nil || string(data) != "2" {
				t.Fatalf("got %q, %v, want a ping", data, err)
			}
			wantSince(t, "ping", start, 25*time.Second)
			time.Sleep(19 * time.Second)
			h.write(conn, "3")
			start = time.Now()
		}
		if _, data, err := conn.Read(t.Context()); err != nil || string(data) != "2" {
			t.Fatalf("got %q, %v, want a ping", data, err)
		}
		time.Sleep(19 * time.Second)
		h.wantOpen()
		h.wantClosed(ReasonPingTimeout)
		wantSince(t, "close", start, 45*time.Second)
	})
}

// TestTimeoutLongerThanInterval: pings keep the interval even if the timeout is longer.
func TestTimeoutLongerThanInterval(t *testing.T) {
	inBubble(t, Options{PingInterval: 2 * time.Second, PingTimeout: 9 * time.Second}, func(t *testing.T, h *harness) {
		conn, s := h.openWebSocket()
		s.Confirm()
		start := time.Now()
		for range 5 {
			if got := h.read(conn); got != "2" {
				t.Fatalf("got %q, want a ping", got)
			}
			wantSince(t, "ping", start, 2*time.Second)
			start = time.Now()
			h.write(conn, "3")
		}
		for range 3 { // and if the answer comes after the interval, but in time
			if got := h.read(conn); got != "2" {
				t.Fatalf("got %q, want a ping", got)
			}
			wantSince(t, "ping", start, 2*time.Second)
			time.Sleep(5 * time.Second)
			start = time.Now()
			h.write(conn, "3")
		}
	})
}

func TestUnconfirmedSessionIsClosed(t *testing.T) {
	inBubble(t, Options{OpenTimeout: 8 * time.Second}, func(t *testing.T, h *harness) {
		start := time.Now()
		h.openPolling()
		h.wantClosed(ReasonUnconfirmed)
		wantSince(t, "close", start, 8*time.Second)
		_, s := h.openPolling()
		s.Confirm()
		time.Sleep(20 * time.Second)
		h.wantOpen()
	})
}

func TestFailedUpgradeLeavesPolling(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *harness) {
		q, s := h.openPolling()
		s.Confirm()
		ws := strings.Replace(q, "polling", "websocket", 1)
		for _, first := range []string{"5", "4x", "2other", ""} { // the last one waits for the time limit
			start := time.Now()
			conn, _, err := h.dial(ws)
			if err != nil {
				t.Fatal(err)
			}
			if first != "" {
				h.write(conn, first)
			}
			if _, _, err := conn.Read(t.Context()); err == nil {
				t.Fatalf("%q: got an answer, want a close", first)
			}
			if first == "" {
				wantSince(t, "end of the probe", start, 10*time.Second)
			}
			h.want("POST", q, "4still here", 200, "ok")
			h.want("GET", q, "", 200, "4still here")
		}
	})
}

// waitingPoll starts a poll and returns when it waits.
func (h *harness) waitingPoll(q string) (body <-chan string) {
	answer := make(chan string, 1)
	go func() {
		_, body := h.request("GET", q, "")
		answer <- body
	}()
	synctest.Wait()
	return answer
}

func TestPollingDuplicatePoll(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *harness) {
		q, _ := h.openPolling()
		first := h.waitingPoll(q)
		h.wantRefusal("GET", q, "", 400, 3)
		if got := <-first; got != "1" {
			t.Errorf("got %q, want a close packet", got)
		}
		h.wantRefusal("GET", q, "", 400, 1)
	})
}

func TestPollingCancelledPoll(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *harness) {
		q, _ := h.openPolling()
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, h.url+q, nil)
		go func() {
			if res, err := h.client.Do(req); err == nil {
				res.Body.Close()
			}
		}()
		synctest.Wait()
		cancel()
		h.wantClosed(ReasonTransportClose)
		h.wantRefusal("GET", q, "", 400, 1)
	})
}

func TestPollingClosePacket(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *harness) {
		q, _ := h.openPolling()
		poll := h.waitingPoll(q)
		h.want("POST", q, "1", 200, "ok")
		if got := <-poll; got != "6" {
			t.Errorf("got %q, want a noop packet", got)
		}
		h.wantClosed(ReasonTransportClose)
		h.wantRefusal("GET", q, "", 400, 1)
	})
}

func TestUpgrade(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *harness) {
		q, s := h.openPolling()
		ws := strings.Replace(q, "polling", "websocket", 1)
		poll := h.waitingPoll(q)
		conn, _, err := h.dial(ws)
		if err != nil {
			t.Fatal(err)
		}
		h.wantDismissed(ws)
		h.write(conn, "2probe")
		if got := h.read(conn); got != "3probe" {
			t.Fatalf("got %q, want the probe answered", got)
		}
		if got := <-poll; got != "6" {
			t.Fatalf("got %q, want the poll released", got)
		}
		h.want("GET", q, "", 200, "6")
		h.want("POST", q, "4queued", 200, "ok") // its echo is sent over the next transport
		h.write(conn, "5")
		if got := h.read(conn); got != "4queued" {
			t.Errorf("got %q, want what was queued", got)
		}
		h.write(conn, "4hello")
		if got := h.read(conn); got != "4hello" {
			t.Errorf("got %q, want the echo", got)
		}
		h.wantRefusal("GET", q, "", 400, 1)
		h.wantRefusal("POST", q, "4x", 400, 1)
		h.wantDismissed(ws)
		h.write(conn, "4unharmed")
		if got := h.read(conn); got != "4unharmed" {
			t.Errorf("got %q, want the echo", got)
		}
		if s.Transport() != "websocket" {
			t.Errorf("got %s", s.Transport())
		}
	})
}

// Messages and what ends the session never share a payload, also if the poll was waiting for them.
func TestMessagesPrecedeTheEnd(t *testing.T) {
	for name, rest := range map[string]func(h *harness, q string){
		"a client that polls again": func(h *harness, q string) { h.want("GET", q, "", 200, "1") },
		"one that has left":         func(*harness, string) { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, h *harness) {
				q, s := h.openPolling()
				poll := h.waitingPoll(q)
				_ = s.Send(NewMessage([]byte("bye")))
				s.Close()
				if got := <-poll; got != "4bye" {
					t.Errorf("got %q, want the message alone", got)
				}
				h.wantClosed(ReasonForced)
				rest(h, q)
				h.wantRefusal("GET", q, "", 400, 1)
			})
		})
	}
}

// A poll that its client had sent before the close packet is answered, for a moment.
func TestPollAfterTheClientsClose(t *testing.T) {
	for name, late := range map[string]func(h *harness, q string){
		"at once": func(h *harness, q string) { h.want("GET", q, "", 200, "6") },
		"never":   func(*harness, string) { time.Sleep(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, h *harness) {
				q, _ := h.openPolling()
				h.want("POST", q, "1", 200, "ok")
				h.wantClosed(ReasonTransportClose)
				late(h, q)
				h.wantRefusal("GET", q, "", 400, 1)
			})
		})
	}
}

// The probe of a session that ends is open until the client has upgraded: the official client takes an earlier end
// for a failed upgrade, and neither polls nor reconnects.
func TestCloseWhileTheClientUpgrades(t *testing.T) {
	for name, end := range map[string]func(h *harness, s *Session){
		"by the server": func(_ *harness, s *Session) { s.Close() },
		"by Shutdown":   func(h *harness, _ *Session) { go h.srv.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, h *harness) {
				q, s := h.openPolling()
				poll := h.waitingPoll(q)
				conn, _, err := h.dial(strings.Replace(q, "polling", "websocket", 1))
				if err != nil {
					t.Fatal(err)
				}
				h.write(conn, "2probe")
				if got := h.read(conn); got != "3probe" {
					t.Fatalf("got %q, want the probe answered", got)
				}
				if got := <-poll; got != "6" {
					t.Fatalf("got %q, want the poll released", got)
				}
				ended := make(chan error, 1)
				go func() {
					_, _, err := conn.Read(context.Background())
					ended <- err
				}()
				end(h, s)
				synctest.Wait()
				select {
				case err := <-ended:
					t.Fatalf("got %v, want the probe open until the upgrade packet", err)
				default:
				}
				h.write(conn, "5")
				if err := <-ended; err == nil {
					t.Error("got a message, want the end")
				}
			})
		})
	}
}

// wantDismissed opens a WebSocket that must be accepted and closed.
func (h *harness) wantDismissed(query string) {
	h.t.Helper()
	conn, _, err := h.dial(query)
	if err != nil {
		h.t.Fatalf("got %v, want it accepted", err)
	}
	if _, _, err := conn.Read(h.t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		h.t.Errorf("got %v, want it closed", err)
	}
}

// wantOpen checks that no session was closed so far.
func (h *harness) wantOpen() {
	h.t.Helper()
	select {
	case reason := <-h.closed:
		h.t.Fatalf("closed with %q, want it open", reason)
	default:
	}
}
