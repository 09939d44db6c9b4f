package widgetapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// unavailable checks for a 503 with Retry-After.
func (w *world) unavailable(what string, got answer) {
	w.t.Helper()
	if got.status != http.StatusServiceUnavailable || got.problem(w.t).Code != "SERVICE_UNAVAILABLE" {
		w.t.Errorf("%s: got %d %s, want 503", what, got.status, got.body)
	}
	if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || seconds < 1 {
		w.t.Errorf("%s: got Retry-After %q, want seconds", what, got.header.Get("Retry-After"))
	}
}

// state returns the service's own state and that of its dependencies.
func (w *world) state() opstest.State {
	state, err := opstest.Read(w.ops)
	if err != nil {
		return opstest.State{}
	}
	return state
}

func (w *world) ready() bool { return w.state().AllUp() }

// loses waits until the service reports the dependency as down. It stays ready and answers 503 where it needs the dependency.
func (w *world) loses(dependency string) {
	w.t.Helper()
	timetest.Until(w.t, "without "+dependency, func() bool { return w.state().Down(dependency) })
	resp, err := http.Get(w.ops + "/readyz")
	w.must(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		w.t.Errorf("without %s: got %d from /readyz, want 200", dependency, resp.StatusCode)
	}
}

const hello = `{"type":"TEXT","data":{"text":"hi"}}`

// While NATS is down nothing is accepted; retrying a failed registration completes it.
func TestNATSOutage(t *testing.T) {
	t.Parallel()
	w := start(t)
	timetest.Until(t, "ready", w.ready)
	token := w.register(appID, `"email":"a@example.com"`)
	w.engines.NATS.Stop()
	w.loses("nats")
	form := `{"appId":"` + appID + `","email":"b@example.com"}`
	w.unavailable("POST /register", w.post("/register", "", form))
	w.unavailable("POST /message", w.post("/message", token, hello))
	if n := len(w.history(token)); n != 2 { // needs no NATS
		t.Errorf("got %d messages, want only the greetings: the message was refused", n)
	}

	w.engines.RestartNATS()
	timetest.Until(t, "ready again", w.ready)
	published := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	retried := w.register(appID, `"email":"b@example.com"`)
	if m := published.Next(); !strings.HasPrefix(m.Subject, "chat.in.visitor.registered."+appID) {
		t.Errorf("got the event %s, want the registration", m.Subject)
	}
	if n := len(w.history(retried)); n != 2 {
		t.Errorf("got %d messages after the retry, want the greetings once", n)
	}
	if got := w.post("/message", token, hello); got.status != http.StatusCreated {
		t.Errorf("POST /message: got %d %s, want 201 again", got.status, got.body)
	}
}

func TestStoreOutage(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.CacheTTL = time.Millisecond })
	timetest.Until(t, "ready", w.ready)
	token := w.register(appID, `"email":"a@example.com"`)
	w.engines.Store.Begin()
	w.loses("store")
	timetest.Until(t, "the cache has expired", func() bool { return w.get("/settings/"+appID, "").status == http.StatusServiceUnavailable })
	w.unavailable("GET /settings/:id", w.get("/settings/"+appID, ""))
	w.unavailable("POST /register", w.post("/register", "", `{"appId":"`+appID+`","email":"b@example.com"}`))
	if got := w.get("/.well-known/jwks.json", ""); got.status != http.StatusOK {
		t.Errorf("the keys: got %d, want 200 with or without the store", got.status)
	}
	w.unavailable("GET /message", w.get("/message", token))
	w.unavailable("POST /message", w.post("/message", token, hello))
	if got := w.get("/message", "x.y.z"); got.status != http.StatusUnauthorized {
		t.Errorf("a wrong token: got %d, want 401 with or without the store", got.status)
	}
	w.engines.Store.End()
	timetest.Until(t, "ready again", w.ready)
	if got := w.post("/message", token, hello); got.status != http.StatusCreated {
		t.Errorf("POST /message: got %d %s, want 201 again", got.status, got.body)
	}
}

// Redis holds only the limits: a replica that starts without it is ready, reports it as down, and serves.
func TestServesWithoutRedis(t *testing.T) {
	t.Parallel()
	url := "redis://" + nettest.Addr(t)
	w := start(t, func(cfg *widgetapi.Config) { cfg.RedisURL = url })
	timetest.Until(t, "ready", func() bool { s := w.state(); return s.Ready && s.Down("redis") })
	w.register(appID, `"email":"a@example.com"`)
}

// The service starts before its engines and waits for them.
func TestStartsBeforeItsEngines(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.stop()
	w.engines.NATS.Stop()
	w.engines.Store.Begin()
	w.run()
	w.unavailable("everything away", w.get("/settings/"+appID, ""))
	if w.state().Ready {
		t.Error("got ready without engines, want not ready")
	}
	if got := w.get("/.well-known/jwks.json", ""); got.status != http.StatusOK {
		t.Errorf("the keys: got %d, want 200: they need neither", got.status)
	}
	w.engines.Store.End()
	w.engines.RestartNATS()
	timetest.Until(t, "ready", w.ready)
	w.register(appID, `"email":"a@example.com"`)
}

// A shutdown under load loses no message that was answered with 201.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	var (
		mu       sync.Mutex
		accepted = map[string]bool{}
		wait     sync.WaitGroup
	)
	enough := make(chan struct{}, 1)
	for range 8 {
		wait.Go(func() {
			for {
				got, err := w.do(http.MethodPost, "/message", hello, headers{"Authorization": "Bearer " + token, "Content-Type": "application/json"})
				if err != nil {
					return
				}
				var r record
				if err := json.Unmarshal([]byte(got.body), &r); err != nil || got.status != http.StatusCreated {
					t.Errorf("got %d %s during the stop, want 201 or no connection", got.status, got.body)
					return
				}
				mu.Lock()
				accepted[r.ID] = true
				if len(accepted) == 20 {
					enough <- struct{}{}
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(timetest.Limit):
		t.Fatal("the load did not start")
	}
	w.stop()
	wait.Wait()
	stored := w.storedIDs()
	for id := range accepted {
		if !stored[id] {
			t.Errorf("message %s was answered with 201 and is not in the stream", id)
		}
	}
}

// storedIDs reads all inbound messages of the stream.
func (w *world) storedIDs() map[string]bool {
	w.t.Helper()
	nc, err := nats.Connect(w.engines.NATSURL)
	w.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	w.must(err)
	ctx, cancel := context.WithTimeout(w.t.Context(), timetest.Limit)
	defer cancel()
	stream, err := js.Stream(ctx, "INBOUND")
	w.must(err)
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	w.must(err)
	ids := map[string]bool{}
	for left := stream.CachedInfo().State.Msgs; left > 0; left-- {
		m, err := consumer.Next(jetstream.FetchMaxWait(timetest.Limit))
		w.must(err)
		ids[m.Headers().Get("Nats-Msg-Id")] = true
	}
	return ids
}

// If other machines can reach the API, the addresses of files must not depend on request headers.
func TestPublicURLIsRequired(t *testing.T) {
	t.Parallel()
	const problem = "PUBLIC_URL is required"
	for addr, required := range map[string]bool{
		":8080": true, "0.0.0.0:8080": true, "[::]:80": true, "192.0.2.1:8080": true, "chat.example.com:80": true,
		"127.0.0.1:8080": false, "[::1]:8080": false, "localhost:8080": false,
	} {
		_, err := widgetapi.New(widgetapi.Config{HTTPAddr: addr})
		if got := strings.Contains(err.Error(), problem); got != required {
			t.Errorf("%s: got %v, want PUBLIC_URL required: %v", addr, err, required)
		}
		cfg := widgetapi.Config{HTTPAddr: addr}
		cfg.PublicURL = "https://chat.example.com"
		if _, err := widgetapi.New(cfg); strings.Contains(err.Error(), problem) {
			t.Errorf("%s with PUBLIC_URL: got %v", addr, err)
		}
	}
}

func TestNewReportsEveryMissingField(t *testing.T) {
	t.Parallel()
	_, err := widgetapi.New(widgetapi.Config{})
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, name := range []string{"NATS_URL", "MONGODB_URI", "VISITOR_KEYS_FILE", "VISITOR_TOKEN_TTL", "Logger"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("got %q, want it to name %s", err, name)
		}
	}
}
