package webhook

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/webhook"
)

// storeDue stores a delivery that is due now, as a retry is.
func (w *world) storeDue(e webhook.Endpoint, ev webhook.Event) webhook.Delivery {
	w.t.Helper()
	body, err := ev.Body()
	w.must(err)
	d := webhook.Delivery{
		ID: webhook.DeliveryID(e.ID, ev), CompanyID: e.CompanyID, EndpointID: e.ID, EventType: ev.Type, Body: body,
		CreatedAt: w.Now(), Status: webhook.Pending, DueAt: w.Now(),
	}
	_, err = w.store.InsertWebhookDelivery(w.t.Context(), d)
	w.must(err)
	return d
}

// newCompany adds a company. own makes an endpoint one of its own.
func (w *world) newCompany() (own func(*webhook.Endpoint)) {
	w.t.Helper()
	id := uuid.NewString()
	w.must(w.store.PutCompany(w.t.Context(), chat.Company{ID: id}))
	return func(e *webhook.Endpoint) { e.CompanyID = id }
}

// Stored deliveries are sent as slots become free, without a pause of PollEvery between them.
func TestBacklog(t *testing.T) {
	t.Parallel()
	const endpoints, each = 100, 6 // more than the slots
	w := newWorld(t, func(cfg *Config) { cfg.PollEvery = time.Hour })
	answered := make(chan string, endpoints*each)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { answered <- r.Header.Get("webhook-id") })
	for range endpoints {
		e := w.endpoint(url)
		for n := range each {
			w.storeDue(e, chatEvent("chat", n))
		}
	}
	w.service.look()
	seen := map[string]bool{}
	for len(seen) < endpoints*each {
		seen[receive(t, answered)] = true
	}
}

// Two companies whose 50 endpoints each never answer, with more deliveries than slots, delay no delivery of a
// third one: neither a new one nor a stored one that has been due for a shorter time than theirs.
func TestSlowCompaniesDelayNoOther(t *testing.T) {
	t.Parallel()
	const concurrent, events = 64, 4
	w := newWorld(t, func(cfg *Config) { cfg.Concurrent, cfg.Timeout = concurrent, time.Hour })
	release, arrived := make(chan struct{}), make(chan string, 2*webhook.MaxEndpoints*events)
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Get("webhook-id")
		<-release
	})
	answer := sync.OnceFunc(func() { close(release) })
	t.Cleanup(answer) // before the server waits for its requests
	for range 2 {
		own := w.newCompany()
		var e webhook.Endpoint
		for range webhook.MaxEndpoints {
			e = w.endpoint(slow, own)
		}
		for n := range events {
			w.send(e, chatEvent("chat", n), n)
		}
	}
	answered := make(chan string, 10)
	e := w.endpoint(serve(t, func(_ http.ResponseWriter, r *http.Request) { answered <- r.Header.Get("webhook-id") }))
	for n := range 3 {
		w.Advance(time.Millisecond)
		if want := w.send(e, chatEvent("new", n), n); receive(t, answered) != want {
			t.Errorf("a new delivery: got another one, want %s", want)
		}
		if want := w.storeDue(e, chatEvent("stored", n)).ID; receive(t, answered) != want {
			t.Errorf("a stored delivery: got another one, want %s", want)
		}
	}
	if n := len(arrived); n < concurrent/2 || n >= concurrent {
		t.Errorf("got %d requests of the slow companies, want at least half and less than all of the %d slots", n, concurrent)
	}
	answer()
	seen := map[string]bool{}
	for len(seen) < 2*webhook.MaxEndpoints*events {
		seen[receive(t, arrived)] = true
	}
}
