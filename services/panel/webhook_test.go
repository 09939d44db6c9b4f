package panel_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/webhook"
)

// A developer creates an endpoint, sees its log and replays failed deliveries. Secrets are shown once, and
// the values of headers never.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	type endpoint struct {
		ID, URL, Status     string
		Headers, PublicKeys []string
	}
	var made struct {
		Endpoint endpoint
		Secrets  []string
	}
	developer.done(http.StatusCreated, http.MethodPost, "/api/webhooks",
		`{"url":"https://crm.example/a","headers":{"X-Api-Key":"hidden"},"signatures":["v1","v1a"],"events":["chat.closed"]}`).Into(t, &made)
	if len(made.Secrets) != 2 || len(made.Endpoint.PublicKeys) != 1 || made.Secrets[1] != made.Endpoint.PublicKeys[0] || made.Endpoint.Status != "enabled" {
		t.Fatalf("got %+v, want a secret and a public key", made)
	}
	path := "/api/webhooks/" + made.Endpoint.ID
	list := developer.done(http.StatusOK, http.MethodGet, "/api/webhooks", "").Body
	if strings.Contains(list, "hidden") || strings.Contains(list, made.Secrets[0]) || !strings.Contains(list, `"headers":["X-Api-Key"]`) {
		t.Errorf("got %s, want the endpoint without its secrets", list)
	}
	developer.done(http.StatusOK, http.MethodPatch, path, `{"url":"https://crm.example/b"}`)
	var rotated struct{ Secrets []string }
	developer.done(http.StatusCreated, http.MethodPost, path+"/rotate", `{"overlapSeconds":60}`).Into(t, &rotated)
	if e, err := w.store.WebhookEndpoint(t.Context(), made.Endpoint.ID); err != nil || len(e.Secrets) != 4 || e.Secrets[0].Value != rotated.Secrets[0] || e.URL != "https://crm.example/b" {
		t.Errorf("got %+v, %v, want it changed, with the new secrets first", e, err)
	}

	var delivery struct{ ID, Status string }
	developer.done(http.StatusAccepted, http.MethodPost, path+"/test", `{}`).Into(t, &delivery)
	w.must(w.store.EndWebhookAttempt(t.Context(), delivery.ID, &webhook.Attempt{At: time.Now(), StatusCode: 500, Answer: "no"},
		webhook.Outcome{Status: webhook.Failed, Reason: webhook.ReasonExhausted}))
	var log struct {
		Deliveries []struct {
			ID, Reason string
			Attempts   []struct {
				StatusCode int
				Answer     string
			}
		}
	}
	developer.done(http.StatusOK, http.MethodGet, path+"/deliveries?status=failed&limit=10", "").Into(t, &log)
	if len(log.Deliveries) != 1 || log.Deliveries[0].Reason != "exhausted" || log.Deliveries[0].Attempts[0].Answer != "no" {
		t.Fatalf("got %+v, want the failed attempt", log)
	}
	var replayed struct{ DeliveryIDs []string }
	for _, body := range []string{`{"dryRun":true}`, `{"reason":"exhausted","from":"2020-01-01T00:00:00Z"}`} {
		developer.done(http.StatusOK, http.MethodPost, path+"/replay", body).Into(t, &replayed)
		if len(replayed.DeliveryIDs) != 1 || replayed.DeliveryIDs[0] != delivery.ID {
			t.Errorf("%s: got %v, want the delivery", body, replayed)
		}
	}
	if d, err := w.store.WebhookDelivery(t.Context(), delivery.ID); err != nil || d.Status != webhook.Pending {
		t.Errorf("got %+v, %v, want it pending again", d, err)
	}
	for body, to := range map[string]string{`{"url":"file:///etc/passwd"}`: path, `{"retentionDays":500}`: "/api/webhooks/retention", `{"from":"soon"}`: path + "/replay"} {
		method := map[bool]string{true: http.MethodPatch, false: http.MethodPut}[to == path]
		if strings.HasSuffix(to, "replay") {
			method = http.MethodPost
		}
		developer.done(http.StatusBadRequest, method, to, body)
	}
	developer.done(http.StatusOK, http.MethodPut, "/api/webhooks/retention", `{"retentionDays":7}`)
	developer.done(http.StatusOK, http.MethodPost, path+"/disable", `{}`)
	developer.done(http.StatusConflict, http.MethodPost, path+"/test", `{}`)
	developer.done(http.StatusNoContent, http.MethodDelete, path, "")
	developer.done(http.StatusNotFound, http.MethodPost, path+"/enable", `{}`)
}

// The values of headers stay with their server: a URL with another origin needs them again.
func TestWebhookHeadersStayWithTheOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	var made struct{ Endpoint struct{ ID string } }
	developer.done(http.StatusCreated, http.MethodPost, "/api/webhooks", `{"url":"https://crm.example/a","headers":{"X-Api-Key":"hidden"}}`).Into(t, &made)
	path := "/api/webhooks/" + made.Endpoint.ID
	for _, url := range []string{"https://thief.example/a", "http://crm.example/a", "https://crm.example:8443/a", "https://crm.example.thief.example"} {
		refused := developer.done(http.StatusBadRequest, http.MethodPatch, path, `{"url":"`+url+`"}`)
		if !strings.Contains(refused.Body, `"field":"headers"`) {
			t.Errorf("%s: got %s, want a field error of headers", url, refused.Body)
		}
	}
	for _, step := range []struct {
		body string
		want map[string]string
	}{
		{`{"url":"https://CRM.example:443/b"}`, map[string]string{"X-Api-Key": "hidden"}},
		{`{"url":"https://new.example","headers":{"X-Api-Key":"its own"}}`, map[string]string{"X-Api-Key": "its own"}},
		{`{"url":"https://third.example","headers":{}}`, nil},
		{`{"url":"https://fourth.example"}`, nil},
	} {
		developer.done(http.StatusOK, http.MethodPatch, path, step.body)
		if e, err := w.store.WebhookEndpoint(t.Context(), made.Endpoint.ID); err != nil || !maps.Equal(e.Headers, step.want) {
			t.Errorf("%s: got the headers %v, %v, want %v", step.body, e.Headers, err, step.want)
		}
	}
}

// A company's tests in a minute are bounded, on all its endpoints together.
func TestWebhookTestsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer, other := w.as(w.acme.users[account.Developer]), w.as(w.other.users[account.Developer])
	var made struct{ Endpoint struct{ ID string } }
	developer.done(http.StatusCreated, http.MethodPost, "/api/webhooks", `{"url":"https://crm.example/a"}`).Into(t, &made)
	const most = 10
	for range most {
		developer.done(http.StatusAccepted, http.MethodPost, "/api/webhooks/"+made.Endpoint.ID+"/test", `{}`)
	}
	if a := developer.done(http.StatusTooManyRequests, http.MethodPost, "/api/webhooks/"+w.acme.endpoint+"/test", `{}`); a.Header.Get("Retry-After") == "" {
		t.Error("got no Retry-After, want one")
	}
	other.done(http.StatusAccepted, http.MethodPost, "/api/webhooks/"+w.other.endpoint+"/test", `{}`)
}
