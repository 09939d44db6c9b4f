package webhook

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/webhook"
)

// lateClaims is a store whose claims take longer than two polls for due deliveries, after the one at the start.
type lateClaims struct {
	Store
	mu            sync.Mutex
	looks         int
	began, looked chan struct{} // closed by the first and by the third poll
}

func (l *lateClaims) DueWebhookDeliveries(ctx context.Context, now time.Time, except []string, limit int) ([]webhook.Due, error) {
	due, err := l.Store.DueWebhookDeliveries(ctx, now, except, limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.looks++; l.looks {
	case 1:
		close(l.began)
	case 3:
		close(l.looked)
	}
	return due, err
}

func (l *lateClaims) ClaimWebhookDelivery(ctx context.Context, id string, now, until time.Time) (webhook.Delivery, bool, error) {
	<-l.looked
	return l.Store.ClaimWebhookDelivery(ctx, id, now, until)
}

// Stored deliveries are sent page after page, without a pause of PollEvery between them.
func TestBacklog(t *testing.T) {
	t.Parallel()
	const endpoints, each = 100, 6 // three pages
	late := &lateClaims{began: make(chan struct{}), looked: make(chan struct{})}
	w := newWorld(t, func(cfg *Config) {
		late.Store = cfg.Store
		cfg.Store, cfg.PollEvery, cfg.PerTarget = late, time.Hour, 2*each // no endpoint reaches its limit
	})
	<-late.began
	answered := make(chan string, endpoints*each)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { answered <- r.Header.Get("webhook-id") })
	for range endpoints {
		e := w.endpoint(url)
		for n := range each {
			ev := chatEvent("chat", n)
			body, err := ev.Body()
			w.must(err)
			_, err = w.store.InsertWebhookDelivery(t.Context(), webhook.Delivery{
				ID: webhook.DeliveryID(e.ID, ev), CompanyID: w.company, EndpointID: e.ID, EventType: ev.Type, Body: body, Position: int64(n),
				CreatedAt: w.Now(), Status: webhook.Pending, DueAt: w.Now(),
			})
			w.must(err)
		}
	}
	w.service.look()
	seen := map[string]bool{}
	for len(seen) < endpoints*each {
		seen[receive(t, answered)] = true
	}
}
