package socketgateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/timetest"
)

const abusers = 4 // concurrently

// intruder sends requests of the engine's protocol, most of them mutated.
type intruder struct {
	random *rand.Rand
	url    string
	token  string
	client *http.Client
	sids   []string // of its last sessions, most of which have ended
	opened int
}

func (i *intruder) pick(of ...string) string { return of[i.random.IntN(len(of))] }

// request is a handshake, a poll or a packet, with up to four things wrong.
func (i *intruder) request(ctx context.Context) *http.Request {
	method, path, query, sid := "GET", "/socket.io/", "EIO=4&transport=polling", ""
	if len(i.sids) > 0 && i.random.IntN(4) > 0 {
		method, sid = i.pick("GET", "POST", "POST"), "&sid="+i.pick(i.sids...)
	}
	var headers int
	for range i.random.IntN(5) {
		switch i.random.IntN(6) {
		case 0:
			method = i.pick("GET", "POST", "OPTIONS", "HEAD", "PUT", "DELETE", "PATCH")
		case 1:
			path = i.pick("/socket.io", "/socket.io//", "/socket.io/x", "/", "/engine.io/")
		case 2:
			query = "EIO=" + i.pick("4", "3", "5", "", "%zz", "4&EIO=3") + "&transport=" + i.pick("polling", "websocket", "webtransport", "", "%00")
		case 3:
			sid = "&sid=" + i.pick("", "x", "..", strings.Repeat("a", 5000), "\u2028", "AAAAAAAAAAAAAAAAAAAA", "&sid=x")
		case 4:
			query += i.pick("&t=1", "&b64=1", "&j=0", "&;")
		default:
			headers++
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, i.url+path, strings.NewReader(i.body()))
	if err != nil {
		panic(err) // never: all methods and paths are valid
	}
	req.URL.RawQuery = query + sid
	for range headers {
		i.mutateHeader(req)
	}
	return req
}

func (i *intruder) body() string {
	connect := `40/message,{"token":"` + i.token + `"}`
	return i.pick("", connect, connect, "3", "2probe", "5", "6", "1", "41/message", "40", "40/nobody,", "4", "9", "\x1e", "\x1e\x1e3",
		connect+"\x1e3\x1e42/message,[\"x\",1]", `42/message,["x",{"_placeholder":true,"num":0}]`, `451-/message,["x",{"_placeholder":true,"num":0}]`,
		`451-/message,["x",{"_placeholder":true,"num":0}]`+"\x1ebAQID", "bAQID", "b!!!", `42/message,99999999999999999999["x"]`, `42/message,[`,
		`459999999999-/message,["x"]`, `40/message,{"token":`, `40/message,[]`, "\xff\xfe", strings.Repeat("4", 200_000), strings.Repeat("\x1e", 50_000),
		connect+"\x1e42/message,1[\"typing\"]\x1e42/message,2[\"typing\",{\"at\":[]}]", connect+"\x1e42/message,1[\"read\"]\x1e42/message,2[\"read\",{\"messageId\":{}}]",
		`42/message,["read",{"messageId":"`+strings.Repeat("m", 8_000)+`"}]`, `42/message,["read",{"messageId":"*.>"}]`, `42/message,["unread",true]`,
		`40/message,`+strings.Repeat("[", 20_000), "44/message", "43/message,1[]", "0{}")
}

func (i *intruder) mutateHeader(req *http.Request) {
	name := i.pick("Origin", "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions", "Content-Type",
		"Accept-Encoding", "X-Forwarded-For", "X-Request-Id", "X-Parley-Forwarded-By", "Content-Encoding", "Access-Control-Request-Headers")
	req.Header.Set(name, i.pick("", "websocket", "Upgrade", "null", "https://evil.example", "13", "dGhlIHNhbXBsZSBub25jZQ==", "gzip",
		"permessage-deflate; client_max_window_bits=99", "application/octet-stream", "*", "x\u00e9", strings.Repeat("a", 4000)))
}

// try sends a request and says what is wrong with its answer. A poll that waits is given up, as clients do.
func (i *intruder) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(20+i.random.IntN(200))*time.Millisecond)
	defer cancel()
	req := i.request(ctx)
	told := fmt.Sprintf("%s %.300s", req.Method, req.URL)
	resp, err := i.client.Do(req)
	if err != nil {
		return i.excused(ctx, told, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return i.excused(ctx, told, err)
	}
	if strings.HasPrefix(string(body), `0{"sid":"`) {
		sid, _, _ := strings.Cut(string(body[len(`0{"sid":"`):]), `"`)
		i.sids = append(i.sids[max(0, len(i.sids)-8):], sid)
		i.opened++
	}
	return check(told, resp, body)
}

// excused knows the requests that have no answer: those that we gave up, and those that net/http does not send.
func (i *intruder) excused(ctx context.Context, told string, err error) error {
	var network net.Error
	if ctx.Err() != nil || errors.As(err, &network) && network.Timeout() || strings.Contains(err.Error(), "invalid header") {
		return nil //nolint:nilerr // not an error of the gateway
	}
	return fmt.Errorf("%s: got %w, want an answer", told, err)
}

// check holds an answer against what the protocol and the APIs' conventions promise: below 500, and errors in
// JSON with a code.
func check(told string, resp *http.Response, body []byte) error {
	switch status := resp.StatusCode; {
	case status == http.StatusSwitchingProtocols || status >= 200 && status < 400:
		return nil
	case status < 400 || status >= 500:
		return fmt.Errorf("%s: got %d %.200s, want no failure", told, status, body)
	}
	var problem struct {
		Code    any    `json:"code"`
		Message string `json:"message"`
	}
	if resp.Request.Method != http.MethodHead && (json.Unmarshal(body, &problem) != nil || problem.Code == nil || problem.Message == "") {
		return fmt.Errorf("%s: got %d %.200s, want JSON with a code and a message", told, resp.StatusCode, body)
	}
	return nil
}

// mostKept is what the gateway may hold more after the abuse than before: pools and what the runtime has not
// given back yet.
const mostKept = 24 << 20

// TestAbuse sends the gateway what no client should send. Nothing of it is a failure of the gateway's,
// neither sessions nor memory stay, and visitors go on being served.
func TestAbuse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is read from /proc")
	}
	t.Parallel()
	f := &faultWorld{world: newWorld(t)}
	g := f.startChild(func(b *childBounds) { b.PingInterval, b.PingTimeout = 300*time.Millisecond, 5*time.Second })
	v := f.visitor()
	inside := connect(t, g.url, v.token)
	inside.await("connect")
	requests := 1000
	if os.Getenv("PARLEY_FAULTS") == long {
		requests = 10_000
	}
	f.abuse(g, requests/5, 1) // warm up pools and buffers
	f.awaitConnections(g, 1)
	before := resident(t, g.command.Process.Pid)
	f.abuse(g, requests, 2)
	f.awaitConnections(g, 1)
	after := resident(t, g.command.Process.Pid)
	for deadline := time.Now().Add(time.Minute); after > before+mostKept && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		after = resident(t, g.command.Process.Pid)
	}
	t.Logf("%d requests: %d MiB before, %d MiB after", requests, before>>20, after>>20)
	if after > before+mostKept {
		t.Errorf("got %d MiB more, want at most %d", (after-before)>>20, mostKept>>20)
	}
	want := f.reply(v, `{"text":"still here"}`)
	if h := inside.await("message"); string(h.Data) != want {
		t.Errorf("got %s, want %s", h.Data, want)
	}
	connect(t, g.url, f.visitor().token).await("connect")
}

// abuse sends mutated requests, several at the same time.
func (f *faultWorld) abuse(g *child, requests int, seed uint64) {
	f.t.Helper()
	var all sync.WaitGroup
	for n := range abusers {
		all.Go(func() {
			transport := &http.Transport{DisableCompression: true}
			defer transport.CloseIdleConnections()
			i := &intruder{random: rand.New(rand.NewPCG(4710+seed, uint64(n))), url: g.url, token: f.visitor().token, client: &http.Client{Transport: transport}}
			for range requests / abusers {
				if err := i.try(f.t.Context()); err != nil {
					f.t.Error(err)
					return
				}
			}
			if i.opened < requests/abusers/50 {
				f.t.Errorf("got only %d sessions opened, want requests that pass the limiter", i.opened)
			}
		})
	}
	all.Wait()
}

// awaitConnections returns when no more connections are open. That is asked for: there is no event to wait for.
func (f *faultWorld) awaitConnections(g *child, most int) {
	f.t.Helper()
	timetest.Await(f.t, fmt.Sprintf("at most %d connections", most), func() (int, error) { return f.connections(g), nil },
		func(open int) bool { return open <= most })
}
