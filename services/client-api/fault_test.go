package clientapi_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	clientapi "github.com/parley-chat/parley/services/client-api"
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

func (w *world) sends() bool { return w.send(`{"text":"hi"}`).status == http.StatusOK }

func TestNATSOutage(t *testing.T) {
	t.Parallel()
	w := start(t)
	timetest.Until(t, "ready", w.ready)
	w.send(`{"text":"hi"}`).success(t)
	w.engines.NATS.Stop()
	w.loses("nats")
	w.unavailable("POST /message/send", w.send(`{"text":"hi"}`))
	w.unavailable("POST /push-message", w.post("/push-message", `{"templateId":"`+templateID+`","source":"989121234567"}`))
	w.engines.RestartNATS()
	timetest.Until(t, "200 again", w.sends)
	timetest.Until(t, "ready again", w.ready)
}

func TestStoreOutage(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) { cfg.CacheTTL = time.Millisecond })
	timetest.Until(t, "ready", w.ready)
	w.send(`{"text":"hi"}`).success(t)
	w.engines.Store.Begin()
	w.loses("store")
	timetest.Until(t, "the cache has expired", func() bool { return w.send(`{"text":"hi"}`).status == http.StatusServiceUnavailable })
	w.unavailable("POST /message/send", w.send(`{"text":"hi"}`))
	w.unavailable("POST /push-message", w.post("/push-message", `{"templateId":"`+templateID+`","source":"989121234567"}`))
	w.engines.Store.End()
	timetest.Until(t, "200 again", w.sends)
	timetest.Until(t, "ready again", w.ready)
}

// Redis holds only the limits: a replica that starts without it is ready, reports it as down, and serves.
func TestServesWithoutRedis(t *testing.T) {
	t.Parallel()
	url := "redis://" + nettest.Addr(t)
	w := start(t, func(cfg *clientapi.Config) { cfg.RedisURL = url })
	timetest.Until(t, "ready", func() bool { s := w.state(); return s.Ready && s.Down("redis") })
	w.send(`{"text":"hi"}`).success(t)
}

// The service starts before its engines and waits for them.
func TestStartsBeforeItsEngines(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.stop()
	w.engines.NATS.Stop()
	w.engines.Store.Begin()
	w.run()
	w.unavailable("everything away", w.send(`{"text":"hi"}`))
	if w.state().Ready {
		t.Error("got ready without engines, want not ready")
	}
	w.engines.Store.End()
	w.engines.RestartNATS()
	timetest.Until(t, "200", w.sends)
	timetest.Until(t, "ready", w.ready)
}

func TestNewReportsEveryMissingField(t *testing.T) {
	t.Parallel()
	_, err := clientapi.New(clientapi.Config{})
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, name := range []string{"NATS_URL", "MONGODB_URI", "Logger"} {
		if !contains(err.Error(), name) {
			t.Errorf("got %q, want it to name %s", err, name)
		}
	}
}
