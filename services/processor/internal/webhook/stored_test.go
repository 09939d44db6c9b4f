package webhook

import (
	"net/http"
	"testing"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// A company that stores too many bytes of deliveries first keeps its log for a shorter time, then gets no further
// ones. Another company and, once deliveries have expired, the company itself do.
func TestStoredDeliveriesOfACompanyAreBounded(t *testing.T) {
	t.Parallel()
	const most = 8
	w := newWorld(t)
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	e, other := w.endpoint(url), w.endpoint(url, w.newCompany())
	each := w.await(w.send(other, chatEvent("chat", 0), 0), ended).Size()
	w.service.stored.limit = most * each
	var sent []string
	for n := range most + 3 {
		sent = append(sent, w.send(e, chatEvent("chat", n), n))
	}
	for n, id := range sent[:most] {
		want := w.Now().Add(webhook.DefaultRetention)
		if n >= most/2 {
			want = w.Now().Add(crowdedRetention)
		}
		if d := w.await(id, ended); !d.ExpiresAt.Equal(store.UTC(want)) {
			t.Errorf("delivery %d: got it kept until %s, want %s", n, d.ExpiresAt, want)
		}
	}
	stored, _, err := w.store.WebhookDeliveries(t.Context(), store.WebhookFilter{CompanyID: w.company}, store.Page{})
	if err != nil || len(stored) != most {
		t.Errorf("got %d deliveries, %v, want %d", len(stored), err, most)
	}
	w.await(w.send(other, chatEvent("chat", 1), 1), ended)

	w.must(w.store.DeleteWebhookEndpoint(t.Context(), e.ID))
	again := w.endpoint(url)
	w.Advance(sumEvery)
	w.await(w.send(again, chatEvent("chat", 0), 0), ended)
}
