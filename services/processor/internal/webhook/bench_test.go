package webhook

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/testkit/storetest"
)

// BenchmarkEndpoints delivers to 1,000 endpoints, each of its own company, while one that gets every tenth
// event never answers. It reports the time from an event to the receiver for the others: paced at 200 events
// a second, and as fast as possible.
func BenchmarkEndpoints(b *testing.B) {
	for name, pause := range map[string]time.Duration{"paced": 5 * time.Millisecond, "unpaced": 0} {
		b.Run(name, func(b *testing.B) { benchmarkEndpoints(b, pause) })
	}
}

func benchmarkEndpoints(b *testing.B, pause time.Duration) {
	const endpoints = 1000
	s := storetest.Open(b)
	cache := store.NewCache(s, store.CacheConfig{TTL: time.Hour})
	service := New(Config{
		Store: s, Cache: cache, Timeout: 15 * time.Second, Concurrent: 256, PerTarget: 10, WarnAfter: time.Hour, PollEvery: time.Second, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	var mu sync.Mutex
	sent, took := map[string]time.Time{}, []time.Duration{}
	arrived := make(chan struct{}, b.N)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		took = append(took, time.Since(sent[r.Header.Get("webhook-id")]))
		mu.Unlock()
		arrived <- struct{}{}
	}))
	defer receiver.Close()
	companies, ids := make([]string, endpoints), make([]string, endpoints)
	for n := range endpoints {
		companies[n], ids[n] = uuid.NewString(), uuid.NewString()
		url := receiver.URL
		if n == 0 {
			url = hanging.URL
		}
		if err := s.PutCompany(b.Context(), chat.Company{ID: companies[n]}); err != nil {
			b.Fatal(err)
		}
		if err := s.CreateWebhookEndpoint(b.Context(), webhook.Endpoint{
			ID: ids[n], CompanyID: companies[n], URL: url, CreatedAt: time.Now().Add(-time.Hour), Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, time.Now())},
		}); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = service.Run(ctx) }()
	work, expected := make(chan int), 0
	var workers sync.WaitGroup
	for range 64 { // as the bus consumer has
		workers.Go(func() {
			for n := range work {
				company := 1 + n%(endpoints-1)
				if n%10 == 0 {
					company = 0
				}
				ev := webhook.Event{Type: webhook.TypeMessageReceived, Key: strconv.Itoa(n), Data: object(n)}
				mu.Lock()
				sent[webhook.DeliveryID(ids[company], ev)] = time.Now()
				mu.Unlock()
				if err := service.deliver(ctx, companies[company], ev, time.Now(), ""); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ResetTimer()
	for n := range b.N {
		if n%10 != 0 {
			expected++
		}
		work <- n
		time.Sleep(pause)
	}
	close(work)
	workers.Wait()
	for range expected {
		<-arrived
	}
	b.StopTimer()
	close(release)
	cancel()
	<-done
	slices.Sort(took)
	if len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	}
	b.ReportMetric(float64(expected)/b.Elapsed().Seconds(), "deliveries/s")
}

// object returns a body of a typical size.
func object(n int) map[string]any {
	return map[string]any{"n": n, "text": "Where is my order? It was to be here on Monday, and the shop does not answer its phone."}
}
