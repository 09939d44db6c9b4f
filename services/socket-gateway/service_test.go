package socketgateway_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/proto-events/subject"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/logtest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/servicetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestReplyReachesAllSocketsOfItsVisitorAndNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start()
	sara, jo := w.visitor(), w.visitor()
	saras := []*client{connect(t, g.url, sara.token), connect(t, g.url, sara.token)}
	jos := connect(t, g.url, jo.token)
	for _, c := range append(saras, jos) {
		c.await("connect")
	}
	want := w.reply(sara, `{"text":"å <b>", "n":1.50,"big":12345678901234567890}`)
	for _, c := range saras {
		if got := string(c.await("message").Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want = w.reply(jo, `{"text":"for Jo"}`)
	if got := string(jos.await("message").Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A reply that widgets cannot show, as a processing layer may publish it, is a dead letter with the reason
// and is not emitted.
func TestReplyThatNobodyCanShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start()
	v := w.visitor()
	c := connect(t, g.url, v.token)
	c.await("connect")
	dead := bustest.Collect(t, w.natsURL, subject.AllDead)
	w.reply(v, `{"text":null}`)
	want := w.reply(v, `{"text":"after it"}`)
	if got := string(c.await("message").Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m := dead.Next()
	if reason := m.Header.Get("Parley-Dead-Reason"); m.Subject != "chat.dead.REPLIES.socket-gateway" || !strings.Contains(reason, "message.data.text is required") {
		t.Errorf("got %s because of %q, want the gateway's letter because of the text", m.Subject, reason)
	}
}

func TestOfficialClient(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"websocket", "polling"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.start()
			v := w.visitor()
			c := connectOfficial(t, g.url, v.token, transport)
			if h := c.await("connect"); h.Transport != transport {
				t.Errorf("got transport %s, want %s", h.Transport, transport)
			}
			for i := range 3 {
				want := w.reply(v, fmt.Sprintf(`{"text":"reply %d"}`, i))
				if got := string(c.await("message").Data); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			refused := connectOfficial(t, g.url, "nonsense", transport).await("connect_error")
			if refused.Message != "Unauthorized" || string(refused.Data) != `{"code":"UNAUTHORIZED"}` {
				t.Errorf("got %q %s, want Unauthorized", refused.Message, refused.Data)
			}
			g.stop()
			if h := c.await("disconnect"); h.Reason == "io server disconnect" {
				t.Errorf("got %s, want a reason after which the client connects elsewhere", h.Reason)
			}
		})
	}
}

// Whichever gateway takes a reply from the stream, each socket of the visitor gets it once, and in order.
func TestTwoGatewaysDeliverEachReplyOnce(t *testing.T) {
	t.Parallel()
	const visitors, replies = 8, 25
	w := newWorld(t)
	gateways := []*gateway{w.start(), w.start()}
	type socket struct {
		*client
		want *[]string
	}
	var sockets []socket
	people, wants := make([]visitor, visitors), make([][]string, visitors)
	for i := range people {
		people[i] = w.visitor()
		for _, g := range gateways {
			sockets = append(sockets, socket{connect(t, g.url, people[i].token), &wants[i]})
		}
	}
	for _, s := range sockets {
		s.await("connect")
	}
	for n := range replies {
		for i, v := range people {
			wants[i] = append(wants[i], w.reply(v, fmt.Sprintf(`{"text":"reply %d"}`, n)))
		}
	}
	for _, s := range sockets {
		for i, want := range *s.want {
			if got := string(s.await("message").Data); got != want {
				t.Fatalf("got %s as number %d, want %s", got, i, want)
			}
		}
	}
	for i := range people { // duplicates would arrive before this
		last := w.reply(people[i], `{"text":"last"}`)
		wants[i] = []string{last}
	}
	for _, s := range sockets {
		if got := string(s.await("message").Data); got != (*s.want)[0] {
			t.Errorf("got %s, want the last reply and nothing doubled before", got)
		}
	}
}

// A gateway that stops leaves what it has not taken to the other one.
func TestStoppingOneGatewayLosesNothing(t *testing.T) {
	t.Parallel()
	const replies = 200
	w := newWorld(t)
	first, second := w.start(), w.start()
	v := w.visitor()
	leaving, staying := connect(t, first.url, v.token), connect(t, second.url, v.token)
	leaving.await("connect")
	staying.await("connect")
	var want []string
	for i := range replies {
		want = append(want, w.reply(v, fmt.Sprintf(`{"text":"reply %d"}`, i)))
		if i == replies/2 {
			leaving.await("message") // so that it is delivering
			go first.stop()
		}
	}
	for i := range want {
		if got := string(staying.await("message").Data); got != want[i] {
			t.Fatalf("got %s as number %d, want %s", got, i, want[i])
		}
	}
	for h := leaving.next(); h.Event != "disconnect"; h = leaving.next() {
		if h.Event != "message" {
			t.Fatalf("got %s, want messages and then a disconnect", h.Event)
		}
	}
	first.stop()
}

func TestWrongTokensAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start()
	v := w.visitor()
	header, rest, _ := strings.Cut(v.token, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	encode := base64.RawURLEncoding.EncodeToString
	tokens := map[string]string{
		"no token":            "",
		"nonsense":            "nonsense",
		"expired":             w.sign(w.keys, v, time.Now().Add(-time.Minute)),
		"signed by a foreign": w.sign(newKeys(t), v, time.Now().Add(time.Hour)),
		"without a signature": header + "." + payload + ".",
		"alg none":            encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + payload + ".",
		"a changed payload":   header + "." + encode([]byte(`{"sub":"someone","appId":"a","iss":"parley","aud":"parley-visitor","exp":99999999999}`)) + "." + signature,
	}
	for name, token := range tokens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := connect(t, g.url, token).await("connect_error")
			if h.Message != "Unauthorized" || string(h.Data) != `{"code":"UNAUTHORIZED"}` {
				t.Errorf("got %q %s, want Unauthorized", h.Message, h.Data)
			}
		})
	}
}

// A gateway that has never seen the keys cannot say that a token is wrong.
func TestKeysDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	away := nettest.Listen(t)
	away.Close()
	var broken http.HandlerFunc = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(broken)
	t.Cleanup(server.Close)
	for name, url := range map[string]string{"nobody there": "http://" + away.Addr().String(), "a broken server": server.URL} {
		g := w.start(func(c *socketgateway.Config) { c.KeySource, c.JWKSURL = nil, url })
		h := connect(t, g.url, w.visitor().token).await("connect_error")
		if string(h.Data) != `{"code":"SERVICE_UNAVAILABLE"}` || !strings.HasPrefix(h.Message, "Service is temporarily unavailable") {
			t.Errorf("%s: got %q %s, want unavailable", name, h.Message, h.Data)
		}
		opstest.AwaitUnready(w.t, g.ops)
	}
}

func TestKeysComeFromTheirServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.Write(w.keys.JWKS()) }))
	t.Cleanup(server.Close)
	g := w.start(func(c *socketgateway.Config) { c.KeySource, c.JWKSURL = nil, server.URL })
	connect(t, g.url, w.visitor().token).await("connect")
	opstest.AwaitUp(w.t, g.ops)
}

func TestSocketEndsWithItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, clock := w.startWithClock()
	v := w.visitor() // for an hour
	c := connect(t, g.url, v.token)
	c.await("connect")
	want := w.reply(v, `{"text":"in time"}`)
	if got := string(c.await("message").Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	clock.advance(59*time.Minute + time.Second)
	c.await("token_expiring")
	clock.advance(time.Minute)
	if h := c.await("disconnect"); h.Reason != "io server disconnect" {
		t.Errorf("got %s, want the server's word", h.Reason)
	}
	if h := connect(t, g.url, v.token).await("connect_error"); h.Message != "Unauthorized" {
		t.Errorf("got %q with the expired token, want Unauthorized", h.Message)
	}
}

func TestStartsWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := newRealRedis(t)
	w := newWorldOn(t, redis.url())
	log := &logtest.Buffer{}
	g := w.start(func(c *socketgateway.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	opstest.AwaitUnready(w.t, g.ops)
	v := w.visitor()
	if h := connect(t, g.url, v.token).await("connect_error"); string(h.Data) != `{"code":"SERVICE_UNAVAILABLE"}` {
		t.Errorf("got %q %s, want unavailable", h.Message, h.Data)
	}
	redis.start()
	opstest.AwaitUp(w.t, g.ops)
	c := connect(t, g.url, v.token)
	c.await("connect")
	want := w.reply(v, `{"text":"hello"}`)
	if got := string(c.await("message").Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	timetest.Until(t, "a line with Redis connected", func() bool { return strings.Contains(log.String(), "Redis connected") })
	if got := strings.Count(log.String(), "Redis unavailable"); got != 1 {
		t.Errorf("got %d lines that say that Redis is unavailable, want one", got)
	}
}

// Redis goes and comes: sockets stay, the gateways stay ready, and a reply that could not be passed on is
// passed on later.
func TestRedisGoesAndComesBack(t *testing.T) {
	t.Parallel()
	redis := newRealRedis(t)
	redis.start()
	w := newWorldOn(t, redis.url())
	gateways := []*gateway{w.start(), w.start()}
	v := w.visitor()
	clients := []*client{connect(t, gateways[0].url, v.token), connect(t, gateways[1].url, v.token)}
	for i, c := range clients {
		c.await("connect")
		opstest.AwaitUp(w.t, gateways[i].ops)
	}
	redis.stop()
	for _, g := range gateways {
		opstest.AwaitDown(w.t, g.ops, "redis")
	}
	w.reply(v, `{"text":"meanwhile"}`)
	redis.start()
	for _, g := range gateways {
		opstest.AwaitUp(w.t, g.ops)
	}
	after := w.reply(v, `{"text":"after"}`)
	meanwhile := 0
	for _, c := range clients {
		for got := string(c.await("message").Data); got != after; got = string(c.await("message").Data) {
			if !strings.Contains(got, `"meanwhile"`) {
				t.Errorf("got %s, want only what was published", got)
			}
			meanwhile++
		}
	}
	// The gateway that consumes a reply delivers it when Redis is back; the other one may not be subscribed yet.
	if meanwhile < 1 || meanwhile > len(clients) {
		t.Errorf("got the reply sent during the outage %d times, want it once or on both gateways", meanwhile)
	}
}

func TestOtherPathsAreNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start()
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get(g.url + "/message")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct {
		StatusCode int    `json:"statusCode"`
		Code       string `json:"code"`
		RequestID  string `json:"requestId"`
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || response.StatusCode != http.StatusNotFound || body.StatusCode != http.StatusNotFound || body.Code != "NOT_FOUND" || body.RequestID == "" {
		t.Errorf("got %d %+v and %v, want the JSON 404", response.StatusCode, body, err)
	}
}

// A widget is embedded on any site, and never with cookies.
func TestAnyOriginMayConnectWithoutCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/socket.io/?EIO=4&transport=polling", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Origin", "https://shop.example.com")
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	allowed := response.Header.Get("Access-Control-Allow-Origin")
	if response.StatusCode != http.StatusOK || (allowed != "*" && allowed != "https://shop.example.com") || response.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("got %d %v %s, want the origin allowed without credentials", response.StatusCode, response.Header, body)
	}
	if cookies := response.Header.Get("Set-Cookie"); cookies != "" {
		t.Errorf("got cookie %q, want none", cookies)
	}
}

func TestGarbageOnRepliesEndsInDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start()
	v := w.visitor()
	c := connect(t, g.url, v.token)
	c.await("connect")
	dead := bustest.Collect(t, w.natsURL, subject.AllDead)
	if _, err := bustest.JetStream(t, w.natsURL).Publish(t.Context(), subject.Reply(v.appID, v.chatUserID), []byte("garbage")); err != nil {
		t.Fatal(err)
	}
	if m := dead.Next(); m.Subject != "chat.dead.REPLIES.socket-gateway" || string(m.Data) != "garbage" {
		t.Errorf("got %s %s, want the garbage in the gateway's dead letters", m.Subject, m.Data)
	}
	want := w.reply(v, `{"text":"goes on"}`)
	if got := string(c.await("message").Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	g := w.start(func(c *socketgateway.Config) { c.Registerer = registry })
	v := w.visitor()
	c := connect(t, g.url, v.token)
	c.await("connect")
	connect(t, g.url, "nonsense").await("connect_error")
	w.reply(v, `{"text":"x"}`)
	c.await("message")
	figures := func() map[string]float64 { return gather(t, registry) }
	want := map[string]float64{
		"parley_gateway_connections websocket":             2,
		"parley_gateway_sockets":                           1,
		"parley_gateway_rooms":                             1,
		"parley_gateway_recoveries_total none":             1,
		"parley_gateway_connect_errors_total UNAUTHORIZED": 1,
	}
	got := figures()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("got %s %v, want %v", name, got[name], value)
		}
	}
	g.stop()
	got = figures()
	if got["parley_gateway_connections websocket"] != 0 || got["parley_gateway_sockets"] != 0 || got["parley_gateway_emits_total ok"] != 1 {
		t.Errorf("got %v after the stop, want no connections and one emit", got)
	}
	if got["parley_gateway_deliveries_total"] != 1 {
		t.Errorf("got %v deliveries, want 1", got["parley_gateway_deliveries_total"])
	}
}

// gather returns counters and gauges by name and label values.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	figures := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			figures[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return figures
}

func TestNewNamesEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := socketgateway.New(socketgateway.Config{DrainTimeout: -1})
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, name := range []string{"NATS_URL", "JWKS_URL", "DRAIN_TIMEOUT", "Logger"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("got %q, want it to name %s", err, name)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q, want one line", err)
	}
}

func TestWrongRedisURLIsNotShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, url := range []string{"redis://:secret@host:port:port", "://secret", "redis://ok:6379,redis://:secret@%zz"} {
		cfg := w.config()
		cfg.RedisURL = url
		_, err := socketgateway.New(cfg)
		if err == nil || !strings.Contains(err.Error(), "REDIS_URL") || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want an error that names REDIS_URL and not its password", err)
		}
	}
}

// The engines that tests embed are heavy and none of the binary's business.
func TestBinaryLinksNoEngine(t *testing.T) {
	t.Parallel()
	servicetest.LinksNoEngine(t, "modernc.org/sqlite")
}
