package clientapi_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	clientapi "github.com/parley-chat/parley/services/client-api"
)

// unavailable checks a 503: it says when to come back.
func (w *world) unavailable(what string, got answer) {
	w.t.Helper()
	if got.status != http.StatusServiceUnavailable || got.problem(w.t).Code != "SERVICE_UNAVAILABLE" {
		w.t.Errorf("%s: got %d %s, want 503", what, got.status, got.body)
	}
	if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || seconds < 1 {
		w.t.Errorf("%s: got Retry-After %q, want seconds", what, got.header.Get("Retry-After"))
	}
}

func (w *world) ready() bool {
	resp, err := http.Get(w.ops + "/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (w *world) sends() bool { return w.send(`{"text":"hi"}`).status == http.StatusOK }

func TestNATSGoesAndComesBack(t *testing.T) {
	t.Parallel()
	w := start(t)
	eventually(t, "ready", w.ready)
	w.send(`{"text":"hi"}`).success(t)
	w.engines.nats.Stop()
	eventually(t, "not ready", func() bool { return !w.ready() })
	w.unavailable("POST /message/send", w.send(`{"text":"hi"}`))
	w.unavailable("POST /push-message", w.post("/push-message", `{"templateId":"`+templateID+`","source":"989121234567"}`))
	w.engines.restartNATS()
	eventually(t, "200 again", w.sends)
	eventually(t, "ready again", w.ready)
}

func TestStoreGoesAndComesBack(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) { cfg.CacheTTL = time.Millisecond })
	eventually(t, "ready", w.ready)
	w.send(`{"text":"hi"}`).success(t)
	w.engines.store.Begin()
	eventually(t, "not ready", func() bool { return !w.ready() })
	eventually(t, "nothing is cached any more", func() bool { return w.send(`{"text":"hi"}`).status == http.StatusServiceUnavailable })
	w.unavailable("POST /message/send", w.send(`{"text":"hi"}`))
	w.unavailable("POST /push-message", w.post("/push-message", `{"templateId":"`+templateID+`","source":"989121234567"}`))
	w.engines.store.End()
	eventually(t, "200 again", w.sends)
	eventually(t, "ready again", w.ready)
}

// The service starts before its engines do, and waits for them.
func TestStartsBeforeItsEngines(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.stop()
	w.engines.nats.Stop()
	w.engines.store.Begin()
	w.run()
	w.unavailable("everything away", w.send(`{"text":"hi"}`))
	if w.ready() {
		t.Error("got ready with nothing there, want not ready")
	}
	w.engines.store.End()
	w.engines.restartNATS()
	eventually(t, "200", w.sends)
	eventually(t, "ready", w.ready)
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
