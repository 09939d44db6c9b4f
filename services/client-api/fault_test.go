package clientapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func (w *world) sends() bool { return w.send(`{"text":"hi"}`).Status == http.StatusOK }

func TestNATSOutage(t *testing.T) {
	t.Parallel()
	w := start(t)
	opstest.AwaitUp(t, w.ops)
	succeeded(t, w.send(`{"text":"hi"}`))
	w.engines.NATS.Stop()
	opstest.AwaitDown(t, w.ops, "nats")
	w.send(`{"text":"hi"}`).Unavailable(t)
	w.post("/push-message", `{"templateId":"`+templateID+`","source":"989121234567"}`).Unavailable(t)
	w.engines.RestartNATS()
	timetest.Until(t, "200 again", w.sends)
	opstest.AwaitUp(t, w.ops)
}

func TestStoreOutage(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) { cfg.CacheTTL = time.Millisecond })
	opstest.AwaitUp(t, w.ops)
	succeeded(t, w.send(`{"text":"hi"}`))
	w.engines.Store.Begin()
	opstest.AwaitDown(t, w.ops, "store")
	timetest.Until(t, "the cache has expired", func() bool { return w.send(`{"text":"hi"}`).Status == http.StatusServiceUnavailable })
	w.send(`{"text":"hi"}`).Unavailable(t)
	w.post("/push-message", `{"templateId":"`+templateID+`","source":"989121234567"}`).Unavailable(t)
	w.engines.Store.End()
	timetest.Until(t, "200 again", w.sends)
	opstest.AwaitUp(t, w.ops)
}

// Redis holds only the limits: a replica that starts without it is ready, reports it as down, and serves.
func TestServesWithoutRedis(t *testing.T) {
	t.Parallel()
	url := "redis://" + nettest.Addr(t)
	w := start(t, func(cfg *clientapi.Config) { cfg.RedisURL = url })
	opstest.AwaitDown(t, w.ops, "redis")
	succeeded(t, w.send(`{"text":"hi"}`))
}

// The service starts before its engines and waits for them.
func TestStartsBeforeItsEngines(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.stop()
	w.engines.NATS.Stop()
	w.engines.Store.Begin()
	w.run()
	w.send(`{"text":"hi"}`).Unavailable(t)
	if state, _ := opstest.Read(w.ops); state.Ready {
		t.Error("got ready without engines, want not ready")
	}
	w.engines.Store.End()
	w.engines.RestartNATS()
	timetest.Until(t, "200", w.sends)
	opstest.AwaitUp(t, w.ops)
}

func TestNewReportsEveryMissingField(t *testing.T) {
	t.Parallel()
	_, err := clientapi.New(clientapi.Config{})
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, name := range []string{"NATS_URL", "MONGODB_URI", "Logger"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("got %q, want it to name %s", err, name)
		}
	}
}
