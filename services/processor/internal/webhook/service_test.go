package webhook

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/testkit/storetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// patience bounds every wait, far above the time that any of them takes.
const patience = 10 * time.Second

// world is a company, a store and a service on a test clock.
type world struct {
	*timetest.Clock
	t       *testing.T
	store   store.Store
	cache   *store.Cache
	company string
	service *Service
	stop    func()
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, Clock: timetest.NewClock(time.Now().UTC().Truncate(time.Millisecond)), store: storetest.Open(t), company: uuid.NewString()}
	w.must(w.store.PutCompany(t.Context(), chat.Company{ID: w.company}))
	w.cache = store.NewCache(w.store, store.CacheConfig{TTL: time.Nanosecond})
	cfg := Config{
		Store: w.store, Cache: w.cache, Timeout: patience, Concurrent: 64, PerTarget: 4, WarnAfter: 24 * time.Hour, PollEvery: 20 * time.Millisecond,
		Now: w.Now, Logger: slog.New(slog.DiscardHandler), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}
	for _, c := range change {
		c(&cfg)
	}
	w.service = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.service.Run(ctx); err != nil {
			t.Errorf("running: got %v, want nil", err)
		}
	}()
	w.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(w.stop)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// serve returns the URL of a receiver.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

func (w *world) endpoint(url string, change ...func(*webhook.Endpoint)) webhook.Endpoint {
	w.t.Helper()
	e := webhook.Endpoint{
		ID: uuid.NewString(), CompanyID: w.company, URL: url, CreatedAt: w.Now().Add(-time.Hour),
		Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, w.Now())},
	}
	for _, c := range change {
		c(&e)
	}
	w.must(w.store.CreateWebhookEndpoint(w.t.Context(), e))
	return e
}

// chatEvent returns the nth event of a chat.
func chatEvent(chatID string, n int) webhook.Event {
	return webhook.Event{Type: webhook.TypeMessageReceived, Data: n, Key: chatID + strconv.Itoa(n), ChatID: chatID}
}

// send delivers an event and returns its webhook-id at an endpoint.
func (w *world) send(e webhook.Endpoint, ev webhook.Event, position int) string {
	w.t.Helper()
	w.must(w.service.deliver(w.t.Context(), e.CompanyID, ev, w.Now().Add(time.Duration(position)), ""))
	return webhook.DeliveryID(e.ID, ev)
}

// await returns the delivery when it satisfies ok.
func (w *world) await(id string, ok func(webhook.Delivery) bool) webhook.Delivery {
	w.t.Helper()
	return timetest.Await(w.t, "the state of the delivery", func() (webhook.Delivery, error) { return w.store.WebhookDelivery(w.t.Context(), id) }, ok)
}

func (w *world) awaitEndpoint(id string, ok func(webhook.Endpoint) bool) webhook.Endpoint {
	w.t.Helper()
	return timetest.Await(w.t, "the state of the endpoint", func() (webhook.Endpoint, error) { return w.store.WebhookEndpoint(w.t.Context(), id) }, ok)
}

func tried(n int) func(webhook.Delivery) bool {
	return func(d webhook.Delivery) bool { return len(d.Attempts) == n }
}

func ended(d webhook.Delivery) bool { return d.Status != webhook.Pending }

// receive returns the next value, and fails the test on a timeout.
func receive[V any](t *testing.T, from <-chan V) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("got nothing, want a request")
		panic("unreachable")
	}
}

// slowInserts counts the deliveries that are stored at once.
type slowInserts struct {
	Store
	running, most atomic.Int64
}

func (s *slowInserts) InsertWebhookDelivery(ctx context.Context, d webhook.Delivery) (bool, error) {
	running := s.running.Add(1)
	defer s.running.Add(-1)
	s.most.Store(max(s.most.Load(), running))
	time.Sleep(10 * time.Millisecond)
	return s.Store.InsertWebhookDelivery(ctx, d)
}

// An event of a company with many endpoints stores few deliveries at once, and one for each endpoint.
func TestInsertsAtOnce(t *testing.T) {
	t.Parallel()
	slow := &slowInserts{}
	w := newWorld(t, func(cfg *Config) {
		slow.Store = cfg.Store
		cfg.Store = slow
	})
	received := make(chan string, 5*insertsAtOnce)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { received <- r.Header.Get("webhook-id") })
	var e webhook.Endpoint
	for range cap(received) {
		e = w.endpoint(url)
	}
	w.send(e, chatEvent("chat", 1), 1)
	for range cap(received) {
		receive(t, received)
	}
	if most := slow.most.Load(); most > insertsAtOnce {
		t.Errorf("got %d deliveries stored at once, want at most %d", most, insertsAtOnce)
	}
}

// Ten attempts over 75 hours with one webhook-id, each with the time of the attempt; then the delivery has
// failed. A replay starts again.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type request struct{ id, timestamp string }
	requests, status := make(chan request, 100), make(chan int, 100)
	e := w.endpoint(serve(t, func(rw http.ResponseWriter, r *http.Request) {
		requests <- request{r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")}
		rw.WriteHeader(<-status)
		_, _ = rw.Write([]byte("no\x00pe"))
	}))
	begun := w.Now()
	var id string
	for n := 1; n <= MaxTries; n++ {
		status <- http.StatusInternalServerError
		if n == 1 {
			id = w.send(e, chatEvent("chat", 1), 0)
		}
		if got, want := receive(t, requests), (request{id, strconv.FormatInt(w.Now().Unix(), 10)}); got != want {
			t.Fatalf("try %d: got %v, want %v", n, got, want)
		}
		d := w.await(id, tried(n))
		last := d.Attempts[n-1]
		if last.StatusCode != http.StatusInternalServerError || last.Answer != "nope" || last.URL != e.URL || !last.NextAt.Equal(d.DueAt) || d.Tries != n {
			t.Fatalf("try %d: got %+v", n, d)
		}
		if n < MaxTries {
			w.Set(d.DueAt)
		}
	}
	d := w.await(id, ended)
	if took := w.Now().Sub(begun); d.Reason != webhook.ReasonExhausted || took < 67*time.Hour || took > 84*time.Hour {
		t.Errorf("got %s %q after %s, want it exhausted after 75 hours, give or take a tenth", d.Status, d.Reason, took)
	}
	if !d.ExpiresAt.Equal(store.UTC(w.Now().Add(webhook.DefaultRetention))) {
		t.Errorf("got it kept until %s, want the default retention", d.ExpiresAt)
	}

	w.Advance(maxPause) // its circuit is open until then
	status <- http.StatusOK
	if replayed, err := w.store.ReplayWebhookDelivery(t.Context(), id, w.Now()); err != nil || !replayed {
		t.Fatalf("replaying: got %v, %v", replayed, err)
	}
	if got := receive(t, requests); got.id != id {
		t.Errorf("a replay: got webhook-id %s, want the same, %s", got.id, id)
	}
	if d := w.await(id, ended); d.Status != webhook.Delivered || d.Tries != 1 || len(d.Attempts) != MaxTries+1 {
		t.Errorf("got %+v, want it delivered in the first try of the replay", d)
	}
	w.awaitEndpoint(e.ID, func(e webhook.Endpoint) bool { return e.FailingSince.IsZero() && e.Warnings == 0 })
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint(serve(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "7200")
		rw.WriteHeader(http.StatusTooManyRequests)
	}))
	d := w.await(w.send(e, chatEvent("chat", 1), 0), tried(1))
	if want := store.UTC(w.Now().Add(2 * time.Hour)); !d.DueAt.Equal(want) {
		t.Errorf("got it due at %s, want %s, as the endpoint asked", d.DueAt, want)
	}
	// The endpoint has requested a pause, so its other deliveries wait too.
	other := w.send(e, chatEvent("chat", 2), 1)
	w.Advance(time.Hour)
	w.must(w.service.beginDue(t.Context()))
	if d := w.await(other, func(webhook.Delivery) bool { return true }); len(d.Attempts) != 0 || !d.DueAt.Before(w.Now()) {
		t.Errorf("got %+v during the pause, want it due, without an attempt", d)
	}
	w.Advance(time.Hour)
	w.await(other, tried(1))
}

// An endpoint that answers 410 gets no further deliveries; the company's others are notified; its pending and
// later deliveries are logged for a replay.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := w.endpoint(serve(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusGone) }))
	collected := make(chan string, 10)
	w.endpoint(serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body := make([]byte, 4096)
		n, _ := r.Body.Read(body)
		collected <- string(body[:n])
	}), func(e *webhook.Endpoint) { e.Events = []string{webhook.TypeEndpointDisabled} })
	if d := w.await(w.send(gone, chatEvent("chat", 1), 0), ended); d.Status != webhook.Failed || d.Reason != webhook.ReasonGone {
		t.Errorf("got %+v, want it failed: gone", d)
	}
	if body := receive(t, collected); !strings.Contains(body, gone.ID) || !strings.Contains(body, `"reason":"gone"`) {
		t.Errorf("got %s, want the endpoint that is gone", body)
	}
	e := w.awaitEndpoint(gone.ID, func(e webhook.Endpoint) bool { return !e.Enabled() })
	if e.DisabledReason != webhook.DisabledGone {
		t.Errorf("got the reason %q, want gone", e.DisabledReason)
	}
	if d := w.await(w.send(gone, chatEvent("chat", 2), 1), ended); d.Reason != webhook.ReasonDisabled || len(d.Attempts) != 0 {
		t.Errorf("an event for an endpoint that is disabled: got %+v, want it in the log", d)
	}
}

// Three warnings, then the endpoint is disabled; a success resets the count.
func TestWarnings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.WarnAfter = time.Hour })
	var mu sync.Mutex
	status := http.StatusBadRequest
	answer := func(s int) { mu.Lock(); defer mu.Unlock(); status = s }
	e := w.endpoint(serve(t, func(rw http.ResponseWriter, _ *http.Request) { mu.Lock(); defer mu.Unlock(); rw.WriteHeader(status) }))
	n := 0
	fail := func() {
		n++
		w.await(w.send(e, chatEvent("chat", n), n), tried(1))
	}
	fail()
	w.awaitEndpoint(e.ID, func(e webhook.Endpoint) bool { return !e.FailingSince.IsZero() })
	answer(http.StatusOK)
	fail()
	w.awaitEndpoint(e.ID, func(e webhook.Endpoint) bool { return e.FailingSince.IsZero() })
	answer(http.StatusBadRequest)
	fail()
	w.awaitEndpoint(e.ID, func(e webhook.Endpoint) bool { return !e.FailingSince.IsZero() })
	for warning := 1; warning <= maxWarnings; warning++ {
		w.Advance(time.Hour) // what is due fails again
		w.awaitEndpoint(e.ID, func(e webhook.Endpoint) bool { return e.Warnings == warning && e.Enabled() })
	}
	w.Advance(24 * time.Hour)
	if e := w.awaitEndpoint(e.ID, func(e webhook.Endpoint) bool { return !e.Enabled() }); e.DisabledReason != webhook.DisabledFailing {
		t.Errorf("got the reason %q, want failing", e.DisabledReason)
	}
}

// The effect of a result on an endpoint by the duration of its failure and the number of warnings.
func TestClassify(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }
	ok, failed, gone := result{attempt: webhook.Attempt{StatusCode: 204}}, result{attempt: webhook.Attempt{StatusCode: 404}}, result{attempt: webhook.Attempt{StatusCode: 410}}
	for name, test := range map[string]struct {
		endpoint webhook.Endpoint
		result   result
		want     change
	}{
		"well":                      {webhook.Endpoint{}, ok, unchanged},
		"fails at first":            {webhook.Endpoint{}, failed, beginsToFail},
		"fails for a while":         {webhook.Endpoint{FailingSince: ago(23)}, failed, unchanged},
		"fails for a day":           {webhook.Endpoint{FailingSince: ago(24)}, failed, isWarned},
		"was warned":                {webhook.Endpoint{FailingSince: ago(47), Warnings: 1, WarnedAt: ago(23)}, failed, unchanged},
		"was warned a day ago":      {webhook.Endpoint{FailingSince: ago(72), Warnings: 2, WarnedAt: ago(24)}, failed, isWarned},
		"was warned three times":    {webhook.Endpoint{FailingSince: ago(96), Warnings: 3, WarnedAt: ago(24)}, failed, isDisabled},
		"recovers":                  {webhook.Endpoint{FailingSince: ago(96), Warnings: 3, WarnedAt: ago(24)}, ok, recovers},
		"is gone":                   {webhook.Endpoint{}, gone, isDisabled},
		"is disabled and fails":     {webhook.Endpoint{DisabledAt: ago(1), FailingSince: ago(96), Warnings: 3, WarnedAt: ago(24)}, failed, unchanged},
		"is disabled and succeeded": {webhook.Endpoint{DisabledAt: ago(1), FailingSince: ago(96)}, ok, unchanged},
	} {
		if got := classify(test.endpoint, test.result, now, 24*time.Hour); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// One endpoint that never answers delays no other, and uses no more requests than its limit.
func TestHangingEndpoint(t *testing.T) {
	t.Parallel()
	const endpoints, events = 30, 20
	w := newWorld(t)
	release := make(chan struct{})
	var mu sync.Mutex
	hanging, most := 0, 0
	slow := w.endpoint(serve(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		hanging++
		most = max(most, hanging)
		mu.Unlock()
		<-release
		mu.Lock()
		hanging--
		mu.Unlock()
	}))
	answered := make(chan string, endpoints*events)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { answered <- r.Header.Get("webhook-id") })
	for range endpoints {
		w.endpoint(url)
	}
	var last string
	for n := range events {
		last = w.send(slow, chatEvent("chat", n), n)
	}
	seen := map[string]bool{}
	for len(seen) < endpoints*events {
		select {
		case id := <-answered:
			seen[id] = true
		case <-time.After(patience):
			t.Fatalf("got %d deliveries while one endpoint hangs, want %d", len(seen), endpoints*events)
		}
	}
	mu.Lock()
	if most > 4 || most == 0 {
		t.Errorf("got %d requests at the endpoint that hangs, want 1 to 4", most)
	}
	mu.Unlock()
	close(release)
	w.await(last, ended)
}

// With ordered delivery the deliveries of a chat arrive one after the other, also after a failure; another
// chat does not wait.
func TestOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	arrived, status := make(chan string, 100), make(chan int, 100)
	e := w.endpoint(serve(t, func(rw http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Get("webhook-id")
		rw.WriteHeader(<-status)
	}), func(e *webhook.Endpoint) { e.Ordered = true })
	status <- http.StatusInternalServerError
	var ids []string
	for n := range 5 {
		ids = append(ids, w.send(e, chatEvent("chat", n), n))
	}
	if got := receive(t, arrived); got != ids[0] {
		t.Fatalf("got %s first, want %s", got, ids[0])
	}
	first := w.await(ids[0], tried(1))
	status <- http.StatusOK
	other := w.send(e, chatEvent("other", 0), 9)
	if got := receive(t, arrived); got != other {
		t.Fatalf("got %s, want another chat's, %s: the first one waits for its next attempt", got, other)
	}
	w.await(other, ended)
	for range ids {
		status <- http.StatusOK
	}
	w.Set(first.DueAt.Add(time.Minute))
	for n, id := range ids {
		if got := receive(t, arrived); got != id {
			t.Fatalf("got %s at place %d, want %s", got, n, id)
		}
		w.await(id, ended)
	}
}

// Deliveries in progress at shutdown are due at once for the next process, and do not count as failures of
// the endpoint.
func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, release := make(chan struct{}), make(chan struct{})
	e := w.endpoint(serve(t, func(http.ResponseWriter, *http.Request) { close(begun); <-release }))
	defer close(release)
	id := w.send(e, chatEvent("chat", 1), 0)
	receive(t, begun)
	w.service.abort() // as stopGrace does
	w.stop()
	if d := w.await(id, func(webhook.Delivery) bool { return true }); d.Status != webhook.Pending || d.DueAt.After(w.Now()) || len(d.Attempts) != 0 {
		t.Errorf("got %+v, want it due, without an attempt", d)
	}
}

// The guard checks the resolved address when the connection is made. A redirect is an answer and is not followed.
func TestAddressesAreRefusedAtConnect(t *testing.T) {
	t.Parallel()
	target := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request passed the guard") })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(target, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	closed := newWorld(t, func(c *Config) { c.Allow = nil })
	for n, url := range []string{target, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://2130706433:" + port, "http://0x7f.1:" + port} {
		e := closed.endpoint(url)
		d := closed.await(closed.send(e, chatEvent("chat", n), n), tried(1))
		if a := d.Attempts[0]; a.StatusCode != 0 || a.Error != "the address is not allowed" && a.Error != "no such host" {
			t.Errorf("%s: got %+v, want the address refused", url, a)
		}
		closed.must(closed.store.DeleteWebhookEndpoint(t.Context(), e.ID))
	}
	open := newWorld(t)
	e := open.endpoint(serve(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Location", target)
		rw.WriteHeader(http.StatusTemporaryRedirect)
	}))
	if d := open.await(open.send(e, chatEvent("chat", 1), 0), tried(1)); d.Attempts[0].StatusCode != http.StatusTemporaryRedirect || d.Status != webhook.Pending {
		t.Errorf("got %+v, want the redirect as a failed attempt", d)
	}
	if transport := open.service.client.Transport.(*http.Transport); transport.Proxy != nil {
		t.Error("got a proxy, want none: it would connect past the guard")
	}
}

// A limiter opens its circuit after consecutive failures, admits one probe, and closes it with a success.
func TestLimiter(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := &limiter{limit: 8}
	failed, overloaded := result{attempt: webhook.Attempt{StatusCode: 500}}, result{attempt: webhook.Attempt{StatusCode: 429}}
	step := func(what string, want int) {
		t.Helper()
		if got := l.capacity(now); got != want {
			t.Errorf("%s: got room for %d, want %d", what, got, want)
		}
	}
	for range breakerFailures - 1 {
		l.failed(now, failed)
	}
	step("before the circuit opens", 8)
	l.failed(now, failed)
	step("when it is open", 0)
	now = now.Add(minPause)
	step("half-open", 1)
	l.running++
	step("while it is probed", 0)
	l.running--
	l.failed(now, failed)
	now = now.Add(minPause)
	step("after a probe that failed", 0)
	now = now.Add(minPause)
	step("half-open again", 1)
	l.succeeded(8)
	step("closed", 8)
	l.failed(now, overloaded)
	step("overloaded", 0)
	now = now.Add(minPause)
	step("after the pause", 4)
	l.succeeded(8)
	step("after a success", 5)
	l.failed(now, result{attempt: webhook.Attempt{StatusCode: 503}, retryAfter: time.Hour})
	now = now.Add(time.Hour - 1)
	step("as long as it asked", 0)
	for range 100 {
		l.failed(now, result{noAnswer: true})
	}
	if l.limit != 1 || l.pause > maxPause {
		t.Errorf("got %+v, want one at a time, and a bounded pause", l)
	}
}
