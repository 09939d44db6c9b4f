package widgetapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/timetest"
)

const hello = `{"type":"TEXT","data":{"text":"hi"}}`

// While NATS is down nothing is accepted; retrying a failed registration completes it.
func TestNATSOutage(t *testing.T) {
	t.Parallel()
	w := start(t)
	opstest.AwaitUp(t, w.ops)
	token := w.register(appID, `"email":"a@example.com"`)
	w.engines.NATS.Stop()
	opstest.AwaitDown(t, w.ops, "nats")
	form := `{"appId":"` + appID + `","email":"b@example.com"}`
	w.post("/register", "", form).Unavailable(t)
	w.post("/message", token, hello).Unavailable(t)
	w.get("/message", token).Unavailable(t) // without the stream it may lack a reply

	w.engines.RestartNATS()
	opstest.AwaitUp(t, w.ops)
	if n := len(w.history(token)); n != 2 {
		t.Errorf("got %d messages, want only the greetings: the message was refused", n)
	}
	published := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	retried := w.register(appID, `"email":"b@example.com"`)
	if m := published.Next(); !strings.HasPrefix(m.Subject, "chat.in.visitor.registered."+appID) {
		t.Errorf("got the event %s, want the registration", m.Subject)
	}
	if n := len(w.history(retried)); n != 2 {
		t.Errorf("got %d messages after the retry, want the greetings once", n)
	}
	if got := w.post("/message", token, hello); got.Status != http.StatusCreated {
		t.Errorf("POST /message: got %d %s, want 201 again", got.Status, got.Body)
	}
}

func TestStoreOutage(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.CacheTTL = time.Millisecond })
	opstest.AwaitUp(t, w.ops)
	token := w.register(appID, `"email":"a@example.com"`)
	w.engines.Store.Begin()
	opstest.AwaitDown(t, w.ops, "store")
	timetest.Until(t, "the cache has expired", func() bool { return w.get("/settings/"+appID, "").Status == http.StatusServiceUnavailable })
	w.get("/settings/"+appID, "").Unavailable(t)
	w.post("/register", "", `{"appId":"`+appID+`","email":"b@example.com"}`).Unavailable(t)
	if got := w.get("/.well-known/jwks.json", ""); got.Status != http.StatusOK {
		t.Errorf("the keys: got %d, want 200 with or without the store", got.Status)
	}
	w.get("/message", token).Unavailable(t)
	w.post("/message", token, hello).Unavailable(t)
	if got := w.get("/message", "x.y.z"); got.Status != http.StatusUnauthorized {
		t.Errorf("a wrong token: got %d, want 401 with or without the store", got.Status)
	}
	w.engines.Store.End()
	opstest.AwaitUp(t, w.ops)
	if got := w.post("/message", token, hello); got.Status != http.StatusCreated {
		t.Errorf("POST /message: got %d %s, want 201 again", got.Status, got.Body)
	}
}

// Redis holds only the limits: a replica that starts without it is ready, reports it as down, and serves.
func TestServesWithoutRedis(t *testing.T) {
	t.Parallel()
	url := "redis://" + nettest.Addr(t)
	w := start(t, func(cfg *widgetapi.Config) { cfg.RedisURL = url })
	opstest.AwaitDown(t, w.ops, "redis")
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
	w.get("/settings/"+appID, "").Unavailable(t)
	if state, _ := opstest.Read(w.ops); state.Ready {
		t.Error("got ready without engines, want not ready")
	}
	if got := w.get("/.well-known/jwks.json", ""); got.Status != http.StatusOK {
		t.Errorf("the keys: got %d, want 200: they need neither", got.Status)
	}
	w.engines.Store.End()
	w.engines.RestartNATS()
	opstest.AwaitUp(t, w.ops)
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
				if err := json.Unmarshal([]byte(got.Body), &r); err != nil || got.Status != http.StatusCreated {
					t.Errorf("got %d %s during the stop, want 201 or no connection", got.Status, got.Body)
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
	stored := bustest.MessageIDs(t, w.engines.NATSURL, "INBOUND")
	for id := range accepted {
		if !stored[id] {
			t.Errorf("message %s was answered with 201 and is not in the stream", id)
		}
	}
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
	for _, name := range []string{"NATS_URL", "MONGODB_URI", "SECRETS_KEY_FILE", "VISITOR_KEYS_FILE", "VISITOR_TOKEN_TTL", "Logger"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("got %q, want it to name %s", err, name)
		}
	}
}
