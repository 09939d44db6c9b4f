package engineio

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// churn counts the sessions of a server whose clients come and go.
type churn struct {
	srv            *Server
	url            string
	client         *http.Client
	opened, closed atomic.Int64
	upgraded       atomic.Int64
}

type churnHandler struct {
	c      *churn
	s      *Session
	closed atomic.Bool
	late   atomic.Int64 // messages after the close
	t      *testing.T
}

func (h *churnHandler) OnMessage(data []byte, _ bool) error {
	if h.closed.Load() && h.late.Add(1) > 1 {
		h.t.Error("got two messages after the close, want at most the one that was on its way")
	}
	_ = h.s.Send(NewMessage(data))
	return nil
}

func (h *churnHandler) OnClose(Reason) {
	if h.closed.Swap(true) {
		h.t.Error("got two closes, want one")
	}
	h.c.closed.Add(1)
}

// TestChurn has clients connect, poll, post, upgrade and disconnect at random during sends to all sessions and
// closes of some, and checks that each session is closed once and nothing is left.
func TestChurn(t *testing.T) {
	t.Parallel()
	c := &churn{client: &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}}
	opts := Options{
		PingInterval: 20 * time.Millisecond, PingTimeout: 2 * time.Second, SendBuffer: 64 << 10, CompressFrom: 512,
		Observer: Observer{Upgraded: func() { c.upgraded.Add(1) }},
	}
	c.srv = NewServer(opts, func(s *Session) Handler {
		c.opened.Add(1)
		return &churnHandler{c: c, s: s, t: t}
	})
	hs := httptest.NewServer(c.srv)
	c.url = hs.URL + "/?EIO=4"
	const clients, lives = 16, 15
	var clientsDone, senderDone sync.WaitGroup
	stop := make(chan struct{})
	senderDone.Go(func() { c.disturb(stop) })
	for i := range clients {
		clientsDone.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range lives {
				c.live(t.Context(), random)
			}
		})
	}
	clientsDone.Wait()
	close(stop)
	senderDone.Wait()
	if err := c.srv.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	hs.Close()
	c.client.CloseIdleConnections()
	if total, webSocket := c.srv.SessionCount(); total != 0 || webSocket != 0 {
		t.Errorf("got %d sessions, %d on WebSocket, want none", total, webSocket)
	}
	if opened, closed := c.opened.Load(), c.closed.Load(); opened < clients*lives/2 || opened != closed {
		t.Errorf("got %d opened and %d closed, want as many and more than half of %d", opened, closed, clients*lives)
	}
	if c.upgraded.Load() == 0 {
		t.Error("got no upgraded session, want some")
	}
}

// disturb sends to all sessions and closes some.
func (c *churn) disturb(stop <-chan struct{}) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	random := rand.New(rand.NewPCG(2, 0))
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		m := NewMessage(make([]byte, random.IntN(2000)), make([]byte, random.IntN(100)))
		for _, s := range c.srv.Sessions() {
			switch random.IntN(100) {
			case 0:
				s.Close()
			case 1:
				_ = s.SendVolatile(m)
			default:
				_ = s.Send(m)
			}
		}
	}
}

// live is one client. It ignores responses, since it may be closed at any time.
func (c *churn) live(ctx context.Context, random *rand.Rand) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if random.IntN(3) == 0 {
		c.webSocket(ctx, "", random)
		return
	}
	open := c.request(ctx, http.MethodGet, "&transport=polling", "")
	_, rest, _ := strings.Cut(open, `"sid":"`)
	sid, _, _ := strings.Cut(rest, `"`)
	var polls sync.WaitGroup
	polls.Go(func() {
		for c.request(ctx, http.MethodGet, "&transport=polling&sid="+sid, "") != "" {
		}
	})
	for range random.IntN(4) {
		c.request(ctx, http.MethodPost, "&transport=polling&sid="+sid, "4hello\x1e3\x1ebAQID")
	}
	switch random.IntN(4) {
	case 0:
		c.request(ctx, http.MethodPost, "&transport=polling&sid="+sid, "1")
	case 1, 2:
		c.webSocket(ctx, sid, random)
	}
	cancel() // cuts the poll that waits
	polls.Wait()
}

// request returns the body of a successful response.
func (c *churn) request(ctx context.Context, method, query, body string) string {
	req, err := http.NewRequestWithContext(ctx, method, c.url+query, strings.NewReader(body))
	if err != nil {
		return ""
	}
	res, err := c.client.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return string(data)
}

// webSocket opens a session, or upgrades the session sid, answers the heartbeat for a while and disconnects.
func (c *churn) webSocket(ctx context.Context, sid string, random *rand.Rand) {
	query := "&transport=websocket"
	if sid != "" {
		query += "&sid=" + sid
	}
	modes := []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionNoContextTakeover}
	conn, _, err := websocket.Dial(ctx, c.url+query, &websocket.DialOptions{HTTPClient: c.client, CompressionMode: modes[random.IntN(2)]})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	first := []string{"4hello"}
	if sid != "" {
		first = []string{"2probe", "5"}[:1+random.IntN(2)]
	}
	for _, text := range first {
		_ = conn.Write(ctx, websocket.MessageText, []byte(text))
	}
	for range 1 + random.IntN(10) {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if string(data) == "2" {
			_ = conn.Write(ctx, websocket.MessageText, []byte("3"))
		}
	}
}
