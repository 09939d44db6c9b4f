package processor_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/processor"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/timetest"
)

// patience bounds every wait, far above the time that any of them takes.
const patience = 30 * time.Second

// delivered is a request to a receiver.
type delivered struct {
	id     string
	header http.Header
	body   string
	event  struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
}

// receiver is a company's server. It verifies every request with the official library, and answers with status.
type receiver struct {
	t        *testing.T
	url      string
	requests chan delivered

	mu      sync.Mutex
	secrets []webhook.Secret
	status  func(n int) int // of the nth request; nil: 204
	n       int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, requests: make(chan delivered, 10_000)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) ServeHTTP(rw http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	for _, s := range r.secrets {
		if s.Kind() == webhook.Ed25519 {
			r.verifyPublic(s, request.Header, body)
			continue
		}
		verifier, err := standardwebhooks.NewWebhook(s.Value)
		if err == nil {
			err = verifier.Verify(body, request.Header)
		}
		if err != nil {
			r.t.Errorf("the official verifier rejects %s: %v", body, err)
		}
	}
	d := delivered{id: request.Header.Get("webhook-id"), header: request.Header, body: string(body)}
	if err := json.Unmarshal(body, &d.event); err != nil {
		r.t.Errorf("a body that is not JSON: %v", err)
	}
	status := http.StatusNoContent
	if r.status != nil {
		status = r.status(r.n)
	}
	rw.WriteHeader(status)
	r.requests <- d
}

// verifyPublic verifies a v1a signature with the public key only.
func (r *receiver) verifyPublic(s webhook.Secret, h http.Header, body []byte) {
	encoded, ok := strings.CutPrefix(s.Verifier(), "whpk_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		r.t.Errorf("got the verifier %s, want a public key", s.Verifier())
	}
	for signature := range strings.SplitSeq(h.Get("webhook-signature"), " ") {
		if encoded, ok := strings.CutPrefix(signature, "v1a,"); ok {
			decoded, _ := base64.StdEncoding.DecodeString(encoded)
			if ed25519.Verify(key, []byte(h.Get("webhook-id")+"."+h.Get("webhook-timestamp")+"."+string(body)), decoded) {
				return
			}
		}
	}
	r.t.Errorf("no v1a signature of %s is right: %s", body, h.Get("webhook-signature"))
}

func (r *receiver) next() delivered {
	r.t.Helper()
	select {
	case d := <-r.requests:
		return d
	case <-time.After(patience):
		r.t.Fatal("got no delivery, want one")
		return delivered{}
	}
}

// endpoint adds an endpoint of the world's company at a receiver.
func (w *world) endpoint(r *receiver, change ...func(*webhook.Endpoint)) webhook.Endpoint {
	w.t.Helper()
	at := now().Add(-time.Hour)
	e := webhook.Endpoint{
		ID: uuid.NewString(), CompanyID: w.company.ID, URL: r.url, CreatedAt: at, Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, at)},
	}
	for _, c := range change {
		c(&e)
	}
	r.mu.Lock()
	r.secrets = e.Secrets
	r.mu.Unlock()
	w.must(w.store.CreateWebhookEndpoint(w.t.Context(), e))
	return e
}

// webhooks is the configuration of a processor that only delivers webhooks, and may deliver to this machine.
func (w *world) webhooks() processor.Config {
	cfg := w.config()
	cfg.Recorder, cfg.Dispatcher, cfg.Bot = false, false, processor.BotExternal
	cfg.WebhookConfig = processor.WebhookConfig{
		Webhooks: true, WebhookTimeout: 10 * time.Second, WebhookConcurrency: 256, WebhookPerEndpoint: 10, WebhookWarnAfter: 24 * time.Hour,
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}
	return cfg
}

// awaitDelivery returns the delivery when it satisfies ok.
func (w *world) awaitDelivery(id string, ok func(webhook.Delivery) bool) webhook.Delivery {
	w.t.Helper()
	return timetest.Await(w.t, "the state of the delivery", func() (webhook.Delivery, error) { return w.store.WebhookDelivery(w.t.Context(), id) }, ok)
}

func hasEnded(d webhook.Delivery) bool { return d.Status != webhook.Pending }

// Every event type arrives once, in its documented form, with every signature; the log has the attempt.
func TestWebhookEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t)
	e := w.endpoint(r, func(e *webhook.Endpoint) {
		e.Headers = map[string]string{"X-Tenant": "acme"}
		e.Secrets = append(e.Secrets, webhook.NewSecret(webhook.Ed25519, now()))
	})
	w.run(w.webhooks())

	registered := event.VisitorRegistered{
		ID: uuid.NewString(), CompanyID: w.company.ID, AppID: w.application.ID, ChatUserID: w.visitor.ID, ChatID: w.chat.ID, ChatOpened: true,
		RegisteredAt: w.chat.CreatedAt, Profile: event.VisitorProfile{FirstName: "Sara"}, VisitorCreated: true,
	}
	back := registered
	back.ID, back.VisitorCreated, back.ChatOpened = uuid.NewString(), false, false
	text, image := w.wrote(chat.Text, `{"text":"<b> & é","n":1.50}`), w.wrote(chat.Image, `{"url":"https://x.example/f","mime":"image/png"}`)
	first := w.wrote(chat.Text, `{"text":"opens"}`)
	first.Message.CreatedAt = w.chat.CreatedAt // it opened the chat, which the registration's event has announced already
	status := event.MessageStatusChanged{CompanyID: w.company.ID, MessageID: uuid.NewString(), Status: chat.StatusFailed, At: now(), Reason: "full", ChatID: w.chat.ID}
	seen := event.MessageStatusChanged{
		CompanyID: w.company.ID, MessageID: uuid.NewString(), Status: chat.StatusRead, At: now(), ChatID: w.chat.ID,
	}
	elsewhere := seen // the report of another device, or of another gateway that comes late
	elsewhere.Status, elsewhere.At = chat.StatusDelivered, seen.At.Add(-time.Second)
	closed := event.ChatControlChanged{
		ID: uuid.NewString(), CompanyID: w.company.ID, ChatID: w.chat.ID, AppID: w.application.ID, ChatUserID: w.visitor.ID, Control: event.ControlBot,
		ChangedAt: now(), ClosedAt: now(),
	}
	rated := event.ChatRated{
		CompanyID: w.company.ID, AppID: w.application.ID, ChatUserID: w.visitor.ID, ChatID: w.chat.ID, Score: 2, Comment: "Slow.", RatedAt: now(),
	}
	better := rated
	better.Score, better.RatedAt = 4, rated.RatedAt.Add(time.Second)
	want := map[string]int{}
	for _, step := range []struct {
		event event.Event
		types string
	}{
		{registered, "visitor.registered chat.opened"}, {back, "visitor.updated"}, {text, "message.received"}, {image, "message.received file.received"},
		{first, "message.received"}, {status, "message.status"},
		{seen, "message.status"}, {elsewhere, ""}, {closed, "chat.closed"},
		{rated, "chat.rated"}, {better, "chat.rated"},
	} {
		w.publish(step.event)
		w.publishRaw(step.event.Subject(), step.event.AppendJSON(nil)) // read twice, as after a crash
		for _, name := range strings.Fields(step.types) {
			want[name]++
		}
	}
	ids, got := map[string]bool{}, map[string]int{}
	for range 12 {
		d := r.next()
		if ids[d.id] {
			t.Errorf("got %s twice", d.id)
		}
		ids[d.id] = true
		got[d.event.Type]++
		if d.header.Get("X-Tenant") != "acme" || d.header.Get("Content-Type") != "application/json" {
			t.Errorf("got the headers %v", d.header)
		}
		if d.event.Type == webhook.TypeMessageReceived && strings.Contains(d.body, text.Message.ID) && !strings.Contains(d.body, `"data":{"text":"<b> & é","n":1.50}`) {
			t.Errorf("got %s, want the message's data as it was sent", d.body)
		}
		logged := w.awaitDelivery(d.id, hasEnded)
		if logged.Status != webhook.Delivered || len(logged.Attempts) != 1 || logged.Attempts[0].StatusCode != http.StatusNoContent || logged.Body != d.body ||
			logged.EndpointID != e.ID || logged.ExpiresAt.IsZero() {
			t.Errorf("got %+v, want one attempt in the log", logged)
		}
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: got %d, want %d", name, got[name], n)
		}
	}
	all, _, err := w.store.WebhookDeliveries(t.Context(), store.WebhookFilter{CompanyID: w.company.ID}, store.Page{})
	if err != nil || len(all) != 12 {
		t.Errorf("got %d deliveries, %v, want 12", len(all), err)
	}
}

// A chat that a message opened, not a registration, is announced by that message's event only.
func TestWebhookOfAChatOpenedByAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t)
	w.endpoint(r, func(e *webhook.Endpoint) { e.Ordered = true })
	w.run(w.webhooks())
	first := w.wrote(chat.Text, `{"text":"hello"}`)
	first.Message.CreatedAt = w.chat.CreatedAt
	w.publish(first)
	w.publish(w.wrote(chat.Text, `{"text":"again"}`))
	for n, want := range []string{webhook.TypeChatOpened, webhook.TypeMessageReceived, webhook.TypeMessageReceived} {
		if d := r.next(); d.event.Type != want || !strings.Contains(d.body, w.chat.ID) {
			t.Errorf("delivery %d: got %s, want a %s of the chat", n, d.body, want)
		}
	}
}

// Two companies with 50 endpoints each that take 14 seconds, and more deliveries than slots, do not delay
// those of a third company.
func TestSlowCompaniesWebhookLoad(t *testing.T) {
	if os.Getenv("PARLEY_FAULTS") != "long" {
		t.Skip("takes a minute: PARLEY_FAULTS=long")
	}
	const events, probes = 20, 50
	w := newWorld(t)
	r := newReceiver(t)
	w.endpoint(r)
	cfg := w.webhooks()
	cfg.WebhookTimeout = 15 * time.Second
	stop := w.run(cfg)
	probe := func() (slowest time.Duration) {
		for range probes {
			began := time.Now()
			w.publish(w.wrote(chat.Text, `{"text":"x"}`))
			r.next()
			slowest = max(slowest, time.Since(began))
		}
		return slowest
	}
	alone := probe()

	var running atomic.Int64
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		_, _ = io.Copy(io.Discard, request.Body) // or the end of the connection is not seen
		select {
		case <-time.After(14 * time.Second):
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	defer stop() // ends its requests
	for range 2 {
		company := chat.Company{ID: uuid.NewString()}
		w.must(w.store.PutCompany(t.Context(), company))
		for range webhook.MaxEndpoints {
			w.must(w.store.CreateWebhookEndpoint(t.Context(), webhook.Endpoint{
				ID: uuid.NewString(), CompanyID: company.ID, URL: slow.URL, CreatedAt: now().Add(-time.Hour),
				Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, now())},
			}))
		}
		for range events {
			e := w.wrote(chat.Text, `{"text":"x"}`)
			e.CompanyID = company.ID
			w.publish(e)
		}
	}
	timetest.Await(t, "the slow requests", func() (int64, error) { return running.Load(), nil }, func(n int64) bool { return n >= 2*64 })
	during := probe()
	t.Logf("slowest delivery: alone %s, with %d slow requests %s", alone, running.Load(), during)
	if bound := 10*alone + 500*time.Millisecond; during > bound {
		t.Errorf("got a delivery after %s, want at most %s", during, bound)
	}
}

// A processor that is killed during its deliveries, and a receiver that is down for a while, lose nothing:
// every message arrives, each under one webhook-id.
func TestKilledProcessorLosesNoWebhook(t *testing.T) {
	t.Parallel()
	const messages = 60
	w := newWorld(t)
	r := newReceiver(t)
	reached := make(chan struct{})
	r.status = func(n int) int {
		switch {
		case n == messages/3:
			close(reached)
		case n > messages/3 && n <= messages/3+5: // down for a moment
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	}
	w.endpoint(r)
	binary := build(t)
	env := []string{"WEBHOOK_ALLOW_CIDRS=127.0.0.1", "WEBHOOK_TIMEOUT=2s", "BOT=external", "RECORDER=false", "DISPATCHER=false"}
	kill := w.spawn(binary, env...)
	var want []string
	for i := range messages {
		e := w.wrote(chat.Text, fmt.Sprintf(`{"text":"message %d"}`, i))
		want = append(want, e.Message.ID)
		w.publish(e)
	}
	select {
	case <-reached:
	case <-time.After(3 * time.Minute):
		t.Fatal("the processor delivered too little")
	}
	kill()
	w.spawn(binary, env...)
	got := map[string]string{} // webhook-id by message
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		all, _, err := w.store.WebhookDeliveries(t.Context(), store.WebhookFilter{CompanyID: w.company.ID, Status: webhook.Delivered}, store.Page{})
		w.must(err)
		if len(all) == messages {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d deliveries, want %d", len(all), messages)
		}
	}
	for len(r.requests) > 0 {
		d := r.next()
		var data struct{ Message struct{ ID string } }
		w.must(json.Unmarshal(d.event.Data, &data))
		if id := got[data.Message.ID]; id != "" && id != d.id {
			t.Errorf("got message %s as %s and %s, want one webhook-id", data.Message.ID, id, d.id)
		}
		got[data.Message.ID] = d.id
	}
	for _, id := range want {
		if got[id] == "" {
			t.Errorf("message %s was lost", id)
		}
	}
}

// During a rotation each delivery has the signatures of both secrets: a receiver with either one accepts it.
// The official verifiers of npm and Go agree, and neither accepts a forged body.
func TestWebhookVerifiers(t *testing.T) {
	t.Parallel()
	node := needs.Program(t, "node")
	w := newWorld(t)
	r := newReceiver(t)
	e := w.endpoint(r, func(e *webhook.Endpoint) {
		e.Secrets = append(e.Secrets, webhook.NewSecret(webhook.Ed25519, now()))
		e.Rotate(now(), time.Hour)
	})
	if len(e.Secrets) != 4 {
		t.Fatalf("got %d secrets, want two of each kind", len(e.Secrets))
	}
	w.run(w.webhooks())
	var input strings.Builder
	for _, text := range []string{`{"text":"plain"}`, `{"text":"é 😀 <&> \u2028 \u0000","n":1e999}`} {
		w.publish(w.wrote(chat.Text, text))
		d := r.next()
		for _, s := range e.Secrets {
			line, err := json.Marshal(map[string]any{
				"verifier": s.Verifier(), "body": d.body, "headers": map[string]string{
					"webhook-id": d.id, "webhook-timestamp": d.header.Get("webhook-timestamp"), "webhook-signature": d.header.Get("webhook-signature"),
				},
			})
			w.must(err)
			input.Write(append(line, '\n'))
		}
	}
	command := exec.Command(node, "testdata/verify.mjs")
	command.Stdin = strings.NewReader(input.String())
	out, err := command.CombinedOutput()
	if err != nil || string(out) != "8 accepted, 8 forged ones refused\n" {
		t.Errorf("got %s, %v, want all accepted", out, err)
	}
}

// With WEBHOOKS off nothing is delivered, and nothing is read.
func TestWebhooksSwitchedOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.endpoint(newReceiver(t))
	cfg := w.webhooks()
	cfg.Webhooks, cfg.Recorder = false, true
	w.run(cfg)
	kept := w.acked(subject.Inbound, "recorder")
	w.publish(w.wrote(chat.Text, `{"text":"x"}`))
	kept.Next()
	all, _, err := w.store.WebhookDeliveries(t.Context(), store.WebhookFilter{CompanyID: w.company.ID}, store.Page{})
	if err != nil || len(all) != 0 {
		t.Errorf("got %d deliveries, %v, want none", len(all), err)
	}
}
