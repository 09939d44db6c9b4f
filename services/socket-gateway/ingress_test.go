package socketgateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/httpapi"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
)

// roundRobin is a load balancer without any affinity: each request goes to the next gateway.
type roundRobin struct {
	url string

	mu    sync.Mutex
	peers []string
	next  int
}

func newRoundRobin(t *testing.T, gateways ...string) *roundRobin {
	t.Helper()
	b := &roundRobin{peers: gateways}
	transport := &http.Transport{}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:      func(p *httputil.ProxyRequest) { p.SetURL(b.pick()) },
		Transport:    transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); transport.CloseIdleConnections() })
	b.url = server.URL
	return b
}

func (b *roundRobin) pick() *url.URL {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	u, _ := url.Parse(b.peers[b.next%len(b.peers)])
	return u
}

// remove is what a load balancer does with a gateway that is not ready any more.
func (b *roundRobin) remove(gateway string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range b.peers {
		if p == gateway {
			b.peers = append(b.peers[:i:i], b.peers[i+1:]...)
			return
		}
	}
}

func (b *roundRobin) replace(gateways ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.peers = gateways
}

// clientEvent is an event that one client of a group reports.
type clientEvent struct {
	Client    int             `json:"client"`
	Event     string          `json:"event"`
	Transport string          `json:"transport"`
	SID       string          `json:"sid"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	Reason    string          `json:"reason"`
}

// clientGroup is several official clients of one visitor.
type clientGroup struct {
	t      *testing.T
	size   int
	events chan clientEvent
}

// startClients runs one of the programs in testdata. The clients end with the test.
func startClients(t *testing.T, program, baseURL, token, transports string, size int, env ...string) *clientGroup {
	t.Helper()
	f := &clientGroup{t: t, size: size, events: make(chan clientEvent, 10_000)}
	env = append(env, "GATEWAY_URL="+baseURL, "TOKEN="+token, "TRANSPORTS="+transports, "CLIENTS="+strconv.Itoa(size))
	startNode(t, f.events, program, env...)
	return f
}

func (f *clientGroup) next() clientEvent {
	f.t.Helper()
	select {
	case e := <-f.events:
		return e
	case <-time.After(limit):
		f.t.Fatal("got no output from the clients, want some")
		return clientEvent{}
	}
}

// connected returns when each client is on its last transport, with the session ids by client.
func (f *clientGroup) connected() []string {
	f.t.Helper()
	sids := make([]string, f.size)
	for range f.size {
		e := f.next()
		if e.Event != "connect" || sids[e.Client] != "" {
			f.t.Fatalf("got %+v, want each client to connect once", e)
		}
		sids[e.Client] = e.SID
	}
	return sids
}

// receive returns when each client has got these messages, in this order, and nothing else.
func (f *clientGroup) receive(want []string) {
	f.t.Helper()
	got := make([]int, f.size)
	for range f.size * len(want) {
		e := f.next()
		if i := got[e.Client]; e.Event != "message" || i == len(want) || !sameJSON(f.t, e.Data, want[i]) {
			f.t.Fatalf("got %+v (%s), want message %d", e, e.Data, got[e.Client])
		}
		got[e.Client]++
	}
}

func (w *world) replies(v visitor, n int) []string {
	w.t.Helper()
	want := make([]string, n)
	for i := range want {
		want[i] = w.reply(v, fmt.Sprintf(`{"text":"reply %d"}`, i))
	}
	return want
}

// Whichever gateway a poll, a POST or an upgrade reaches, the session goes on.
func TestNoStickySessions(t *testing.T) {
	t.Parallel()
	for _, transports := range []string{"polling", "polling,websocket", "websocket"} {
		t.Run(transports, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			registries := make([]*prometheus.Registry, 3)
			urls := make([]string, 3)
			for i := range registries {
				registries[i] = prometheus.NewRegistry()
				urls[i] = w.start(func(c *socketgateway.Config) { c.Registerer = registries[i] }).url
			}
			v := w.visitor()
			f := startClients(t, "clients.mjs", newRoundRobin(t, urls...).url, v.token, transports, 6)
			holders := make(map[string]bool)
			for _, sid := range f.connected() {
				holder, _, _ := strings.Cut(sid, ".")
				holders[holder] = true
			}
			if len(holders) < 2 {
				t.Errorf("got all sessions on one gateway, want them on several")
			}
			f.receive(w.replies(v, 20))
			forwarded := 0.0
			for _, r := range registries {
				forwarded += gather(t, r)["parley_gateway_forwards_total forwarded"]
			}
			if polled := strings.HasPrefix(transports, "polling"); polled != (forwarded > 0) {
				t.Errorf("got %v forwarded requests, want some: %v", forwarded, polled)
			}
		})
	}
}

// A gateway is killed: its clients, and those whose requests it was forwarding, connect to the others.
func TestKilledGatewayLosesNobody(t *testing.T) {
	t.Parallel()
	for _, transports := range []string{"polling", "polling,websocket"} {
		t.Run(transports, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			victim := w.startChild()
			balancer := newRoundRobin(t, victim.url, w.start().url, w.start().url)
			v := w.visitor()
			f := startClients(t, "clients.mjs", balancer.url, v.token, transports, 6)
			id, _, _ := strings.Cut(handshake(t, victim.url), ".")
			sids := f.connected()
			if !strings.Contains(strings.Join(sids, " "), id+".") {
				t.Fatalf("got no client on the gateway that is killed, want one")
			}
			balancer.remove(victim.url)
			victim.kill()
			for !allElsewhere(sids, id) {
				switch e := f.next(); e.Event {
				case "disconnect":
					sids[e.Client] = ""
				case "connect":
					sids[e.Client] = e.SID
				}
			}
			f.reachAll(func() { w.reply(v, `{"text":"are you there"}`) })
		})
	}
}

// reachAll returns when each client has got something that send has sent; some may only find out now that
// they are cut off.
func (f *clientGroup) reachAll(send func()) {
	f.t.Helper()
	reached := make(map[int]bool)
	for deadline := time.Now().Add(limit); len(reached) < f.size; {
		send()
		for waiting := time.After(200 * time.Millisecond); waiting != nil; {
			select {
			case e := <-f.events:
				if e.Event == "message" {
					reached[e.Client] = true
				}
			case <-waiting:
				waiting = nil
			}
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("got %d clients that are reached, want %d", len(reached), f.size)
		}
	}
}

// allElsewhere tells whether everybody is connected, and not to that gateway.
func allElsewhere(sids []string, id string) bool {
	return !slices.ContainsFunc(sids, func(sid string) bool { return sid == "" || strings.HasPrefix(sid, id+".") })
}

// A session of a gateway that is gone, or never was, is unknown in the protocol's words, wherever the request arrives.
func TestSessionsOfNobodyAreUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, gone := w.start(), w.start()
	leftBehind := handshake(t, gone.url)
	gone.stop()
	for _, sid := range []string{leftBehind, "AAAAAAAA.x", "nonsense", "../../..", "AAAAAAAA." + strings.Repeat("x", 2000)} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			status, _, body := request(t, method, g.url+"/socket.io/?EIO=4&transport=polling&sid="+url.QueryEscape(sid), nil)
			if status != http.StatusBadRequest || strings.TrimSpace(body) != `{"code":1,"message":"Session ID unknown"}` {
				t.Errorf("%s %.40s: got %d %s, want that the session is unknown", method, sid, status, body)
			}
		}
	}
}

// A request that a client has marked as forwarded is not forwarded.
func TestRequestsAreForwardedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	holder, other := w.start(), w.start()
	target := other.url + "/socket.io/?EIO=4&transport=polling&sid=" + handshake(t, holder.url)
	status, _, body := request(t, http.MethodPost, target, http.Header{"Parley-Forwarded-By": {"x"}})
	if status != http.StatusBadRequest || !strings.Contains(body, `"code":1`) {
		t.Errorf("got %d %s, want that the session is unknown", status, body)
	}
	status, header, body := request(t, http.MethodGet, target, http.Header{"Origin": {"https://shop.example.com"}, "X-Poll": {"x"}})
	if allowed := header.Values("Access-Control-Allow-Origin"); status != http.StatusOK || len(allowed) != 1 {
		t.Errorf("got %d %s with allowed origins %q, want the holder's answer", status, body, allowed)
	}
}

// handshake opens a polling session and asks for a namespace that is not there, so that the next poll has an answer.
func handshake(t *testing.T, baseURL string) (sid string) {
	t.Helper()
	status, _, body := request(t, http.MethodGet, baseURL+"/socket.io/?EIO=4&transport=polling", nil)
	var open struct {
		SID string `json:"sid"`
	}
	if status != http.StatusOK || json.Unmarshal([]byte(strings.TrimPrefix(body, "0")), &open) != nil || open.SID == "" {
		t.Fatalf("got %d %s, want a session", status, body)
	}
	request(t, http.MethodPost, baseURL+"/socket.io/?EIO=4&transport=polling&sid="+open.SID, nil, "40/nowhere,")
	return open.SID
}

func request(t *testing.T, method, url string, header http.Header, body ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(strings.Join(body, "")))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: limit}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, _ := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(got)
}

// sameJSON tells whether two texts are the same value.
func sameJSON(t *testing.T, got []byte, want string) bool {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(a, b)
}

func problem(t *testing.T, body string) httpapi.Problem {
	t.Helper()
	var p httpapi.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("got %s, want an error body: %v", body, err)
	}
	return p
}

// A full gateway says so, in the APIs' words; those inside go on, and when one leaves there is room again.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(func(c *socketgateway.Config) { c.MaxConnections = 3 })
	v := w.visitor()
	for range 5 {
		handshake(t, g.url) // has no token and does not count
	}
	inside := []*client{connect(t, g.url, v.token), connect(t, g.url, v.token)}
	for _, c := range inside {
		c.await("connect")
	}
	leaving := join(t, g.url, v.token)
	for _, transport := range []string{"polling", "websocket"} {
		status, header, body := request(t, http.MethodGet, g.url+"/socket.io/?EIO=4&transport="+transport, http.Header{"X-Request-Id": {"r-1"}})
		p := problem(t, body)
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") != "10" || header.Get("Access-Control-Allow-Origin") != "*" ||
			p.StatusCode != status || p.Code != "TOO_MANY_CONNECTIONS" || p.Message != "Too many connections" || p.RequestID != "r-1" {
			t.Errorf("%s: got %d %v %s, want the refusal", transport, status, header, body)
		}
	}
	want := w.replies(v, 3)
	for _, c := range inside {
		for i := range want {
			if got := string(c.await("message").Data); got != want[i] {
				t.Errorf("got %s, want %s", got, want[i])
			}
		}
	}
	request(t, http.MethodPost, g.url+"/socket.io/?EIO=4&transport=polling&sid="+leaving, nil, "1")
	connect(t, g.url, v.token).await("connect")
}

// However many come at once, never are there more than allowed, and all places are taken.
func TestMaxConnectionsHoldsForACrowd(t *testing.T) {
	t.Parallel()
	const most, clients = 10, 60
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	g := w.start(func(c *socketgateway.Config) { c.MaxConnections, c.Registerer = most, registry })
	outcomes := make(chan string, clients)
	v := w.visitor()
	for range clients {
		go func() { outcomes <- tryToJoin(t, g.url, v.token) }()
	}
	counts := make(map[string]int)
	for range clients {
		counts[<-outcomes]++
	}
	if counts["joined"] != most || counts["joined"]+counts["closed"]+counts["refused"] != clients {
		t.Errorf("got %v, want %d connections and the rest refused or closed", counts, most)
	}
	if status := w.get(g.url + "/socket.io/?EIO=4&transport=polling"); status != http.StatusServiceUnavailable {
		t.Errorf("got %d, want no more places", status)
	}
	if got, want := gather(t, registry)["parley_gateway_refusals_total connections"], float64(counts["refused"]+1); got != want {
		t.Errorf("got %v refusals counted, want %v", got, want)
	}
}

// join joins over polling and returns the sid.
func join(t *testing.T, baseURL, token string) (sid string) {
	t.Helper()
	sid = handshake(t, baseURL)
	url := baseURL + "/socket.io/?EIO=4&transport=polling&sid=" + sid
	request(t, http.MethodPost, url, nil, `40/message,{"token":"`+token+`"}`)
	for {
		status, _, body := request(t, http.MethodGet, url, nil)
		if status != http.StatusOK {
			t.Fatalf("got %d %s, want to join", status, body)
		}
		if strings.Contains(body, "40/message,{") {
			return sid
		}
	}
}

// tryToJoin says how that went: refused at the limiter, closed since it was full, or joined.
func tryToJoin(t *testing.T, baseURL, token string) string {
	status, _, body := request(t, http.MethodGet, baseURL+"/socket.io/?EIO=4&transport=polling", nil)
	if status == http.StatusServiceUnavailable {
		return "refused"
	}
	sid, _, _ := strings.Cut(strings.TrimPrefix(body, `0{"sid":"`), `"`)
	url := baseURL + "/socket.io/?EIO=4&transport=polling&sid=" + sid
	request(t, http.MethodPost, url, nil, `40/message,{"token":"`+token+`"}`)
	switch status, _, body := request(t, http.MethodGet, url, nil); {
	case status == http.StatusOK && strings.HasPrefix(body, "40/message,{"):
		return "joined"
	case status == http.StatusOK && body == "1":
		return "closed"
	default:
		return fmt.Sprint(status, body)
	}
}

func TestConnectRate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(func(c *socketgateway.Config) { c.ConnectRate = 2 })
	v := w.visitor()
	inside := connect(t, g.url, v.token)
	inside.await("connect")
	refusals := 0
	for range 20 {
		status, header, body := request(t, http.MethodGet, g.url+"/socket.io/?EIO=4&transport=polling", nil)
		if status == http.StatusOK {
			continue
		}
		refusals++
		if p := problem(t, body); status != http.StatusServiceUnavailable || header.Get("Retry-After") != "1" || p.Code != "TOO_MANY_CONNECTIONS" {
			t.Fatalf("got %d %v %s, want the refusal", status, header, body)
		}
	}
	if refusals == 0 {
		t.Error("got 20 connections immediately, want some refused")
	}
	want := w.reply(v, `{"text":"goes on"}`)
	if got := string(inside.await("message").Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for deadline := time.Now().Add(limit); w.get(g.url+"/socket.io/?EIO=4&transport=polling") != http.StatusOK; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("got no connection after the limiter refilled, want one")
		}
	}
}

// A visitor has so many sockets and no more, however many are asked for at once; other visitors do not matter.
func TestMaxSocketsPerVisitor(t *testing.T) {
	t.Parallel()
	const most = 4
	w := newWorld(t)
	g := w.start(func(c *socketgateway.Config) { c.MaxSocketsPerVisitor = most })
	v := w.visitor()
	var inside []*client
	var clients []*client
	for range 3 * most {
		clients = append(clients, connect(t, g.url, v.token))
	}
	for _, c := range clients {
		switch h := c.next(); {
		case h.Event == "connect":
			inside = append(inside, c)
		case h.Event != "connect_error" || h.Message != "Too many connections" || string(h.Data) != `{"code":"TOO_MANY_CONNECTIONS","retryAfter":30}`:
			t.Errorf("got %+v %s, want the refusal", h, h.Data)
		}
	}
	if len(inside) != most {
		t.Errorf("got %d sockets, want %d", len(inside), most)
	}
	connect(t, g.url, w.visitor().token).await("connect")
	want := w.reply(v, `{"text":"goes on"}`)
	for _, c := range inside {
		if got := string(c.await("message").Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if f := startClients(t, "clients.mjs", g.url, v.token, "websocket", 1).next(); f.Event != "connect_error" || string(f.Data) != `{"code":"TOO_MANY_CONNECTIONS","retryAfter":30}` {
		t.Errorf("got %+v, want the official client to hear of the bound", f)
	}
}
