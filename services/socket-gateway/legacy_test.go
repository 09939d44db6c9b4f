package socketgateway_test

import (
	"context"
	"crypto/ed25519"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/services/socket-gateway/internal/legacy"
)

func withLegacy(c *socketgateway.Config) {
	c.SocketIOLegacy, c.PingInterval, c.PingTimeout = true, 25*time.Second, 20*time.Second
}

// awaitLegacy returns when the legacy server of a gateway answers.
func awaitLegacy(t *testing.T, baseURL string) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		status, _, body := request(t, http.MethodGet, baseURL+"/socket.io/?EIO=3&transport=polling", nil)
		if status == http.StatusOK {
			return
		}
		if status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatalf("got %d %s from the legacy server, want it to be there", status, body)
		}
	}
}

// Old and new clients of a visitor are in the same room, on whichever gateway they are.
func TestLegacyClientsShareTheRoom(t *testing.T) {
	t.Parallel()
	for _, transports := range []string{"polling", "websocket", "polling,websocket"} {
		t.Run(transports, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, second := w.start(withLegacy), w.start(withLegacy)
			for _, g := range []*gateway{first, second} {
				awaitLegacy(t, g.url)
			}
			v := w.visitor()
			groups := []*clientGroup{
				startClients(t, "legacy.cjs", first.url, v.token, transports, 3),
				startClients(t, "legacy.cjs", newRoundRobin(t, first.url, second.url).url, v.token, transports, 3),
			}
			other := startClients(t, "legacy.cjs", first.url, w.visitor().token, transports, 1)
			modern := connect(t, second.url, v.token)
			modern.await("connect")
			other.connected()
			for _, f := range groups {
				f.connected()
			}
			want := append(w.replies(v, 10), w.reply(v, `{"text":"å 漢 😀 <b>\u2028","n":1.5,"nested":{"list":[1,null,true]}}`))
			for _, f := range groups {
				f.receive(want)
			}
			for _, m := range want {
				if got := string(modern.await("message").Data); got != m {
					t.Errorf("got %s on the modern socket, want %s", got, m)
				}
			}
			if len(other.events) > 0 {
				t.Errorf("got %+v for another visitor, want nothing", <-other.events)
			}
		})
	}
}

// Without binary support the library counts bytes where the client counts characters.
func TestLegacyClientWithoutBinarySupport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(withLegacy)
	awaitLegacy(t, g.url)
	v := w.visitor()
	f := startClients(t, "legacy.cjs", g.url, v.token, "polling", 2, "FORCE_BASE64=1")
	f.connected()
	f.receive([]string{w.reply(v, `{"text":"å 漢 😀"}`)})
}

func TestLegacyClientsNeedTheirToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(withLegacy)
	awaitLegacy(t, g.url)
	v := w.visitor()
	for _, token := range []string{"", "nonsense", w.sign(newKeys(t), v, time.Now().Add(time.Hour)), w.sign(w.keys, v, time.Now().Add(-time.Minute))} {
		for _, transport := range []string{"polling", "websocket"} {
			e := startClients(t, "legacy.cjs", g.url, token, transport, 1).next()
			if e.Event != "error" || string(e.Data) != `{"message":"Unauthorized","data":{"code":"UNAUTHORIZED"}}` {
				t.Errorf("%s, token %.10q: got %+v %s, want Unauthorized", transport, token, e, e.Data)
			}
		}
	}
	// A client cannot set its identity with the internal header.
	forged := http.Header{"Parley-Legacy-Visitor": {"eyJyb29tIjoiYS1iIn0="}}
	_, _, body := request(t, http.MethodGet, g.url+"/socket.io/?EIO=3&transport=polling&b64=1", forged)
	sid := between(body, `"sid":"`, `"`)
	target := g.url + "/socket.io/?EIO=3&transport=polling&b64=1&sid=" + sid
	request(t, http.MethodGet, target, forged) // the root's CONNECT
	posted, _, _ := request(t, http.MethodPost, target, http.Header{"Content-Type": {"text/plain;charset=UTF-8"}}, "11:40/message,")
	if _, _, body = request(t, http.MethodGet, target, forged); posted != http.StatusOK || !strings.Contains(body, "Unauthorized") {
		t.Errorf("got %d and %q, want Unauthorized", posted, body)
	}
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

func TestLegacySocketEndsWithItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(withLegacy)
	awaitLegacy(t, g.url)
	v := w.visitor()
	// The legacy server uses the real clock: if the client is too slow for a short token, retry with a longer one.
	for life := 4 * time.Second; ; life *= 4 {
		expires := time.Now().Add(life)
		f := startClients(t, "legacy.cjs", g.url, w.sign(w.keys, v, expires), "polling,websocket", 1)
		e := f.next()
		if e.Event != "connect" && time.Now().After(expires) && life < limit {
			continue
		}
		if e.Event != "connect" {
			t.Fatalf("got %+v, want a connection", e)
		}
		if e = f.next(); e.Event != "disconnect" || e.Reason != "io server disconnect" || time.Now().Before(expires.Truncate(time.Second)) {
			t.Errorf("got %+v, want the server's word when the token expires", e)
		}
		return
	}
}

func TestLegacySocketEndsWhenItsTokensAreRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(withLegacy)
	awaitLegacy(t, g.url)
	v := w.visitor()
	revoked, other := startClients(t, "legacy.cjs", g.url, v.token, "websocket", 2), startClients(t, "legacy.cjs", g.url, w.visitor().token, "websocket", 1)
	revoked.connected()
	other.connected()
	if err := w.bus.RevokeVisitorTokens(t.Context(), "company", v.chatUserID, credential.RevocationTime(time.Now())); err != nil {
		t.Fatal(err)
	}
	for range revoked.size {
		if e := revoked.next(); e.Event != "disconnect" || e.Reason != "io server disconnect" {
			t.Errorf("got %+v, want the server's word", e)
		}
	}
	if e := startClients(t, "legacy.cjs", g.url, v.token, "websocket", 1).next(); e.Event != "error" {
		t.Errorf("got %+v with the revoked token, want an error", e)
	}
	if len(other.events) > 0 {
		t.Errorf("got %+v for another visitor, want nothing", <-other.events)
	}
}

// A gateway that stops closes old clients' sockets one by one, and they come back elsewhere.
func TestLegacySocketsAreDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start(withLegacy, func(c *socketgateway.Config) { c.DrainTimeout = time.Second })
	second := w.start(withLegacy)
	awaitLegacy(t, first.url)
	awaitLegacy(t, second.url)
	v := w.visitor()
	balancer := newRoundRobin(t, first.url)
	f := startClients(t, "legacy.cjs", balancer.url, v.token, "websocket", 5)
	f.connected()
	balancer.replace(second.url)
	go first.stop()
	var began, last time.Time
	for back := 0; back < f.size; {
		switch e := f.next(); {
		case e.Event == "disconnect" && e.Reason == "io server disconnect":
			t.Errorf("got %s, want a reason after which the client connects elsewhere", e.Reason)
		case e.Event == "disconnect":
			if last = time.Now(); began.IsZero() {
				began = last
			}
		case e.Event == "connect":
			back++
		}
	}
	if spread := last.Sub(began); spread < 500*time.Millisecond {
		t.Errorf("got all closed within %s, want them spread over a second", spread)
	}
	f.receive([]string{w.reply(v, `{"text":"elsewhere"}`)})
	first.stop()
}

func TestLegacyBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(withLegacy, func(c *socketgateway.Config) { c.MaxSocketsPerVisitor = 2 })
	awaitLegacy(t, g.url)
	v := w.visitor()
	f := startClients(t, "legacy.cjs", g.url, v.token, "websocket", 5)
	connected, refused := 0, 0
	for range 5 {
		switch e := f.next(); {
		case e.Event == "connect":
			connected++
		case e.Event == "error" && string(e.Data) == `{"message":"Too many connections","data":{"code":"TOO_MANY_CONNECTIONS","retryAfter":30}}`:
			refused++
		default:
			t.Errorf("got %+v %s", e, e.Data)
		}
	}
	if connected != 2 || refused != 3 {
		t.Errorf("got %d sockets and %d refused, want 2 and 3", connected, refused)
	}
	full := w.start(withLegacy, func(c *socketgateway.Config) { c.MaxConnections, c.MaxPendingPerAddress = 1, 5 })
	awaitLegacy(t, full.url)
	let := 0
	for w.get(full.url+"/socket.io/?EIO=3&transport=polling") == http.StatusOK { // without a token
		if let++; let > 5 {
			t.Fatal("got unlimited connections without a token, want a limit")
		}
	}
	for deadline := time.Now().Add(limit); w.get(full.url+"/socket.io/?EIO=3&transport=polling&token="+v.token) != http.StatusServiceUnavailable; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("got unlimited connections, want a limit")
		}
	}
	if status := w.get(full.url + "/socket.io/?EIO=4&transport=polling"); status != http.StatusServiceUnavailable {
		t.Errorf("got %d for a new client, want one bound for both kinds", status)
	}
}

// The legacy server is killed: modern sockets notice nothing, it is started again, and its clients come back.
func TestKilledLegacyServerHarmsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	pidFile := filepath.Join(t.TempDir(), "pid")
	g := w.start(withLegacy, func(c *socketgateway.Config) {
		c.Registerer = registry
		c.LegacyArgv = []string{"sh", "-c", `echo $$ > "$1"; exec "$0" legacy`, os.Args[0], pidFile}
	})
	awaitLegacy(t, g.url)
	v := w.visitor()
	modern := connect(t, g.url, v.token)
	modern.await("connect")
	old := startClients(t, "legacy.cjs", g.url, v.token, "polling,websocket", 2)
	old.connected()
	for range 2 {
		pid, _ := os.ReadFile(pidFile)
		n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
		if err != nil || n <= 1 {
			t.Fatalf("got pid %q: %v", pid, err)
		}
		if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		want := w.reply(v, `{"text":"meanwhile"}`)
		if h := modern.await("message"); string(h.Data) != want {
			t.Errorf("got %s, want %s", h.Data, want)
		}
		back := make(map[int]bool)
		for len(back) < old.size {
			if e := old.next(); e.Event == "connect" {
				back[e.Client] = true
			}
		}
		want = w.reply(v, `{"text":"all of you"}`)
		old.receive([]string{want})
		if h := modern.await("message"); string(h.Data) != want {
			t.Errorf("got %s, want %s", h.Data, want)
		}
	}
	if got := gather(t, registry)["parley_gateway_legacy_starts_total"]; got != 3 {
		t.Errorf("got %v starts, want 3", got)
	}
}

// A gateway that is killed leaves no legacy server behind.
func TestLegacyServerEndsWithItsGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	child := exec.Command(os.Args[0], legacy.Command)
	stdin, _ := child.StdinPipe()
	stdout, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(stdin, `{"socket":"`+filepath.Join(t.TempDir(), "s")+`","redisURL":"`+w.redisURL+`","pingInterval":1000000000,"pingTimeout":1000000000}`+"\n")
	if n, err := stdout.Read(make([]byte, 100)); n == 0 {
		t.Fatalf("got nothing from the legacy server: %v", err)
	}
	// signals that a terminal sends to the whole process group
	for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		if err := child.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	stdin.Close()
	if err := child.Wait(); err != nil {
		t.Errorf("got %v, want a quiet end", err)
	}
}

func TestWithoutLegacyOldClientsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start()
	status, _, body := request(t, http.MethodGet, g.url+"/socket.io/?EIO=3&transport=polling", nil)
	if status != http.StatusBadRequest || strings.TrimSpace(body) != `{"code":5,"message":"Unsupported protocol version"}` {
		t.Errorf("got %d %s, want code 5", status, body)
	}
	if e := startClients(t, "legacy.cjs", g.url, w.visitor().token, "polling", 1).next(); e.Event != "connect_error" {
		t.Errorf("got %+v, want an error", e)
	}
}

// What the library would get wrong does not reach it.
func TestLegacyRequestsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(withLegacy)
	awaitLegacy(t, g.url)
	base := g.url + "/socket.io/?EIO=3&transport="
	for _, test := range []struct{ method, url, want string }{
		{http.MethodGet, base + "polling&sid=unknown", `{"code":1,"message":"Session ID unknown"}`},
		{http.MethodGet, base + "flash", `{"code":0,"message":"Transport unknown"}`},
		{http.MethodPost, base + "polling", `{"code":2,"message":"Bad handshake method"}`},
		{http.MethodDelete, base + "polling", `{"code":2,"message":"Bad handshake method"}`},
		{http.MethodGet, base + "polling&j=alert(1)", `{"code":3,"message":"Bad request"}`},
	} {
		if status, _, body := request(t, test.method, test.url, nil); status != http.StatusBadRequest || body != test.want {
			t.Errorf("%s %s: got %d %s, want %s", test.method, test.url, status, body, test.want)
		}
	}
	status, header, _ := request(t, http.MethodOptions, base+"polling", http.Header{"Origin": {"https://shop.example.com"}})
	if status != http.StatusNoContent || header.Get("Access-Control-Allow-Origin") != "https://shop.example.com" {
		t.Errorf("got %d %v, want the preflight allowed", status, header)
	}
	_, header, _ = request(t, http.MethodGet, base+"polling", http.Header{"Origin": {"https://shop.example.com"}})
	if allowed := header.Values("Access-Control-Allow-Origin"); len(allowed) != 1 || allowed[0] != "https://shop.example.com" || header.Get("Set-Cookie") != "" {
		t.Errorf("got %v, want the origin allowed once, and no cookie", header)
	}
}

// countedKeys counts the tokens that are verified.
type countedKeys struct {
	credential.KeySource
	asked atomic.Int64
}

func (k *countedKeys) Key(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	k.asked.Add(1)
	return k.KeySource.Key(ctx, kid)
}

// Old clients bring their token with the handshake and with an upgrade. Above the rate of their address it is
// not verified.
func TestAddressIsCheckedBeforeTheToken(t *testing.T) {
	t.Parallel()
	const rate = 4
	w := newWorld(t)
	keys := &countedKeys{KeySource: w.keys}
	g := w.start(withLegacy, func(c *socketgateway.Config) {
		c.KeySource, c.AddressRate = keys, config.Rate{Count: rate, Per: time.Hour}
	})
	_, _, opened := request(t, http.MethodGet, g.url+"/socket.io/?EIO=4&transport=polling", nil)
	_, sid, _ := strings.Cut(opened, `"sid":"`)
	sid, _, _ = strings.Cut(sid, `"`)
	forged := "&token=" + w.forgedTokens(1)[0]
	paths := []string{"?EIO=3&transport=polling" + forged, "?EIO=3&transport=websocket&sid=" + sid + forged}
	for n := range 3 * rate {
		status, header, body := request(t, http.MethodGet, g.url+"/socket.io/"+paths[n%len(paths)], nil)
		refused := strings.Contains(body, "TOO_MANY_CONNECTIONS")
		if want := n >= rate-1; refused != want {
			t.Errorf("request %d: got %d %s, want it refused for its address: %v", n+1, status, body, want)
		}
		if refused && (status != http.StatusServiceUnavailable || header.Get("Retry-After") == "") {
			t.Errorf("got %d %v, want 503 with Retry-After", status, header)
		}
	}
	if got := keys.asked.Load(); got != rate-1 {
		t.Errorf("got %d tokens verified, want %d", got, rate-1)
	}
}
