package clientapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// keyed posts with the company's token and an Idempotency-Key.
func (w *world) keyed(key, path, body string) httpapitest.Response {
	w.t.Helper()
	a, err := w.do(http.MethodPost, path, body, w.keyHeaders(key))
	w.must(err)
	return a
}

func (w *world) keyHeaders(key string) headers {
	return headers{"x-access-token": w.token, "Content-Type": "application/json", "Idempotency-Key": key}
}

func pushBody(source string) string {
	return `{"templateId":"` + templateID + `","source":"` + source + `"}`
}

// replica runs another Client API on the same engines.
func (w *world) replica(options ...option) *world {
	w.t.Helper()
	other := *w
	other.run(options...)
	return &other
}

// posts returns, for each route that takes a key: a body, the same body in another spelling, and a different body.
func (w *world) posts() map[string][3]string {
	return map[string][3]string{
		"/message/send": {
			sendBody("TEXT", `{"text":"one","n":1.50}`, w.chatID), sendBody("TEXT", ` { "n": 1.50, "text":"\u006fne"}`, strings.ToUpper(w.chatID)),
			sendBody("TEXT", `{"text":"two"}`, w.chatID),
		},
		"/push-message": {pushBody("989121234567"), " " + pushBody("989121234567"), `{"templateId":"` + templateID + `","source":"989121234567","username":"Sara"}`},
	}
}

func TestARetryGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	w := start(t)
	heard := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	for path, bodies := range w.posts() {
		key := uuid.NewString()
		first := w.keyed(key, path, bodies[0])
		id := succeeded(t, first).MessageID
		if m := heard.Next(); m.Header.Get("Nats-Msg-Id") != id || first.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s: got %s and the event %s, want one message, not replayed", path, first.Body, m.Header.Get("Nats-Msg-Id"))
		}
		for _, retry := range []httpapitest.Response{w.keyed(key, path, bodies[0]), w.keyed(`"`+key+`"`, path, bodies[0]), w.keyed(key, path, bodies[1])} {
			if retry.Status != first.Status || retry.Body != first.Body || retry.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s: got %d %s, want %s, replayed", path, retry.Status, retry.Body, first.Body)
			}
		}
		if other := w.keyed(key, path, bodies[2]); other.Status != http.StatusUnprocessableEntity || other.Problem(t).Code != "IDEMPOTENCY_KEY_REUSED" {
			t.Errorf("%s: got %d %s for another body, want 422", path, other.Status, other.Body)
		}
		if bad := w.keyed("two keys", path, bodies[0]); bad.Status != http.StatusBadRequest || bad.Problem(t).Code != "IDEMPOTENCY_KEY_INVALID" {
			t.Errorf("%s: got %d %s for a malformed key, want 400", path, bad.Status, bad.Body)
		}
	}
	succeeded(t, w.send(`{"text":"last"}`))
	if m := heard.Next(); !strings.Contains(string(m.Data), `"last"`) {
		t.Errorf("got the event %s, want none of the retries'", m.Data)
	}
}

// An error is replayed like any other answer, with the retry's own request id.
func TestARetryGetsTheFirstRefusal(t *testing.T) {
	t.Parallel()
	w := start(t)
	body := sendBody("TEXT", `{"text":"hi"}`, unknownID)
	first, again := w.keyed("k", "/message/send", body), w.keyed("k", "/message/send", body)
	if first.Status != http.StatusNotFound || again.Status != http.StatusNotFound || again.Problem(t).Code != first.Problem(t).Code {
		t.Errorf("got %s and %s, want 404 twice", first.Body, again.Body)
	}
	if again.Header.Get("Idempotency-Replayed") != "true" || again.Problem(t).RequestID == first.Problem(t).RequestID {
		t.Errorf("got %v %s, want a replay with its own request id", again.Header, again.Body)
	}
}

// A request that fails validation or authentication does not use up its key.
func TestARejectedRequestDoesNotUseUpItsKey(t *testing.T) {
	t.Parallel()
	w := start(t)
	if a := w.keyed("k", "/message/send", `{}`); a.Status != http.StatusBadRequest {
		t.Fatalf("got %d, want 400", a.Status)
	}
	succeeded(t, w.keyed("k", "/message/send", sendBody("TEXT", `{"text":"hi"}`, w.chatID)))
}

func TestAKeyBelongsToItsCompanyAndRoute(t *testing.T) {
	t.Parallel()
	w := start(t)
	succeeded(t, w.keyed("k", "/message/send", sendBody("TEXT", `{"text":"hi"}`, w.chatID)))
	if push := w.keyed("k", "/push-message", pushBody("989121234567")); push.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("got %s, want an answer of the other route's own", push.Body)
	}
	header := w.keyHeaders("k")
	header["x-access-token"] = w.other
	other, err := w.do(http.MethodPost, "/message/send", sendBody("TEXT", `{"text":"hi"}`, w.chatID), header)
	w.must(err)
	if other.Status != http.StatusNotFound || other.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("got %d %s, want 404: it is another company's chat", other.Status, other.Body)
	}
	header["x-access-token"] = w.addToken(companyID)
	renewed, err := w.do(http.MethodPost, "/message/send", sendBody("TEXT", `{"text":"hi"}`, w.chatID), header)
	w.must(err)
	if renewed.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %d %s, want the answer again: it is the same company's other token", renewed.Status, renewed.Body)
	}
}

func TestFiftyAtOnceOnTwoReplicas(t *testing.T) {
	t.Parallel()
	w := start(t)
	replicas := []*world{w, w.replica()}
	body := sendBody("TEXT", `{"text":"once"}`, w.chatID)
	answers := make([]string, 50)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			for range 1000 {
				a, err := replicas[i%2].do(http.MethodPost, "/message/send", body, w.keyHeaders("k"))
				if err == nil && a.Status == http.StatusConflict && a.Problem(t).Code == "IDEMPOTENCY_KEY_IN_USE" && a.Header.Get("Retry-After") != "" {
					continue
				}
				if err != nil || a.Status != http.StatusOK {
					t.Errorf("got %d %s %v, want 200 or 409", a.Status, a.Body, err)
				}
				answers[i] = a.Body
				return
			}
		})
	}
	group.Wait()
	for _, a := range answers {
		if a != answers[0] || a == "" {
			t.Errorf("got %q and %q, want one answer", a, answers[0])
		}
	}
	if n := len(w.storedIDs()); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

// While NATS is down nothing is accepted and the key is not used up: the next attempt sends the same message.
func TestARetryAfterAnOutage(t *testing.T) {
	t.Parallel()
	w := start(t)
	opstest.AwaitUp(t, w.ops)
	w.engines.NATS.Stop()
	opstest.AwaitDown(t, w.ops, "nats")
	body := sendBody("TEXT", `{"text":"hi"}`, w.chatID)
	w.keyed("k", "/message/send", body).Unavailable(t)
	w.engines.RestartNATS()
	var sent httpapitest.Response
	timetest.Until(t, "200", func() bool { sent = w.keyed("k", "/message/send", body); return sent.Status == http.StatusOK })
	again := w.keyed("k", "/message/send", body)
	if again.Body != sent.Body || len(w.storedIDs()) != 1 {
		t.Errorf("got %s after %s and %d events, want one message", again.Body, sent.Body, len(w.storedIDs()))
	}
}

// dead leaves the state of a process that has died between the publish and its answer.
func (w *world) dead(key, path, fingerprint string, at time.Time) (messageID string) {
	w.t.Helper()
	id, err := uuid.NewV7()
	w.must(err)
	_, inserted, err := w.store.InsertIdempotencyRecord(w.t.Context(), idempotency.Record{
		ID: idempotency.Fingerprint("POST "+path+"|"+companyID, key), Fingerprint: fingerprint, MessageID: id.String(),
		At: at, LeasedUntil: at.Add(idempotency.Lease), ExpiresAt: at.Add(idempotency.KeyTTL),
	})
	if err != nil || !inserted {
		w.t.Fatalf("inserting the claim: %t, %v", inserted, err)
	}
	return id.String()
}

func TestAProcessDiesBetweenPublishAndAnswer(t *testing.T) {
	t.Parallel()
	began := time.Now().Truncate(time.Millisecond)
	now := timetest.NewClock(began)
	w := start(t, func(cfg *clientapi.Config) { cfg.Now = now.Now })
	const data = `{"text":"hi"}`
	body := sendBody("TEXT", data, w.chatID)
	id := w.dead("k", "/message/send", idempotency.Fingerprint("TEXT", w.chatID, data), began)
	m := chat.Message{ID: id, CreatedAt: began, Type: chat.Text, Data: json.RawMessage(data), NameOfSender: "Bo", IsFromSupport: true}
	w.must(w.openBus().Publish(t.Context(), event.Derived(), event.CompanyMessageAccepted{CompanyID: companyID, ChatID: w.chatID, Message: m}))

	waiting := w.keyed("k", "/message/send", body)
	if seconds, err := strconv.Atoi(waiting.Header.Get("Retry-After")); waiting.Status != http.StatusConflict || err != nil || seconds < 1 {
		t.Errorf("within the lease: got %d %s, want 409 with Retry-After", waiting.Status, waiting.Body)
	}
	now.Set(began.Add(idempotency.Lease))
	sent := w.keyed("k", "/message/send", body)
	if got := succeeded(t, sent).MessageID; got != id || len(w.storedIDs()) != 1 {
		t.Errorf("got the message %s and %d events, want %s and 1", got, len(w.storedIDs()), id)
	}
	if again := w.keyed("k", "/message/send", body); again.Body != sent.Body || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %s, want %s, replayed", again.Body, sent.Body)
	}
}

// After JetStream has forgotten the id, the history still has it, even when the chat is too old by then.
func TestAProcessDiedLongAgo(t *testing.T) {
	t.Parallel()
	now := timetest.NewClock(time.Now())
	w := start(t, func(cfg *clientapi.Config) { cfg.Now = now.Now })
	began := time.Now().Add(-23 * time.Hour)
	const data = `{"text":"hi"}`
	id := w.dead("k", "/message/send", idempotency.Fingerprint("TEXT", w.chatID, data), began)
	w.must(w.store.AppendMessage(t.Context(), w.chatID, chat.Message{ID: id, CreatedAt: began, Type: chat.Text, Data: json.RawMessage(data), IsFromSupport: true}))
	_, err := w.store.ChangeChat(t.Context(), w.chatID, store.ChatChange{ClosedAt: time.Now()})
	w.must(err)
	if got := succeeded(t, w.keyed("k", "/message/send", sendBody("TEXT", data, w.chatID))).MessageID; got != id {
		t.Errorf("got the message %s, want %s", got, id)
	}
	pushed := w.dead("k", "/push-message", idempotency.Fingerprint(templateID, "989121234567", ""), began)
	w.must(w.store.AppendMessage(t.Context(), w.chatID, chat.Message{ID: pushed, CreatedAt: began, Type: chat.Template, Data: json.RawMessage(`{}`), IsFromSupport: true}))
	if got := succeeded(t, w.keyed("k", "/push-message", pushBody("989121234567"))).MessageID; got != pushed {
		t.Errorf("got the push %s, want %s", got, pushed)
	}
	if n := len(w.storedIDs()); n != 0 {
		t.Errorf("got %d events, want none: both messages are stored", n)
	}
}

func TestAKeyIsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	now := timetest.NewClock(time.Now())
	w := start(t, func(cfg *clientapi.Config) { cfg.Now = now.Now })
	first := succeeded(t, w.keyed("k", "/push-message", pushBody("989121234567")))
	now.Set(now.Now().Add(idempotency.KeyTTL))
	second := succeeded(t, w.keyed("k", "/push-message", pushBody("989121234568")))
	if first.MessageID == second.MessageID {
		t.Error("got the same message, want another")
	}
}

// cuttingProxy is a proxy that cuts each connection after a random number of bytes, in either direction.
type cuttingProxy struct {
	t      *testing.T
	ln     net.Listener
	server string
	cut    atomic.Int64
	open   sync.WaitGroup
}

func startCuttingProxy(t *testing.T, server string) *cuttingProxy {
	t.Helper()
	c := &cuttingProxy{t: t, ln: nettest.Listen(t), server: server}
	c.open.Go(c.accept)
	t.Cleanup(func() { c.ln.Close(); c.open.Wait() })
	return c
}

func (c *cuttingProxy) accept() {
	for {
		client, err := c.ln.Accept()
		if err != nil {
			return
		}
		c.open.Go(func() { c.serve(client) })
	}
}

func (c *cuttingProxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		client.Close()
		return
	}
	var once sync.Once
	end := func() { once.Do(func() { client.Close(); server.Close() }) }
	pass := func(to, from net.Conn, bytes int64) {
		defer end()
		if n, _ := io.CopyN(to, from, bytes); n == bytes {
			c.cut.Add(1)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { pass(server, client, 1+rand.Int64N(8000)) }) // a request has about 500 bytes, an answer 350
	both.Go(func() { pass(client, server, 1+rand.Int64N(6000)) })
	both.Wait()
}

// Each of a thousand sends is repeated until it is answered, and then three more times, over connections that
// are cut at random. The stream holds a thousand messages, and every answer to a send is the same.
func TestAThousandSendsOverCutConnections(t *testing.T) {
	t.Parallel()
	w := start(t)
	way := startCuttingProxy(t, strings.TrimPrefix(w.base, "http://"))
	sends, clients := 1000, 16
	if raced && os.Getenv("PARLEY_FAULTS") != "long" {
		sends = 250 // the embedded engines are too slow for more in a full test run
	}
	ids := make([]string, sends)
	var next atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for n := int(next.Add(1)) - 1; n < sends; n = int(next.Add(1)) - 1 {
				ids[n] = w.sendThrough(client, "http://"+way.ln.Addr().String(), n)
			}
		})
	}
	group.Wait()
	stored, distinct := w.storedIDs(), map[string]bool{}
	for n, id := range ids {
		distinct[id] = true
		if !stored[id] {
			t.Errorf("send %d: message %q is not in the stream", n, id)
		}
	}
	if len(stored) != sends || len(distinct) != sends {
		t.Errorf("got %d messages in the stream and %d in the answers, want %d", len(stored), len(distinct), sends)
	}
	if cut := way.cut.Load(); cut < int64(sends)/2 {
		t.Errorf("only %d connections were cut", cut)
	}
}

// sendThrough sends the nth message until it is answered and then three more times, and returns its id.
func (w *world) sendThrough(client *http.Client, base string, n int) (id string) {
	var first string
	deadline := time.Now().Add(10 * timetest.Limit)
	for left := 4; left > 0; {
		body, err := w.sendOnce(client, base, n)
		switch {
		case errors.Is(err, errRetry) && time.Now().Before(deadline):
			continue
		case err != nil:
			w.t.Errorf("send %d: %v", n, err)
			return ""
		case first == "":
			first = body
		case body != first:
			w.t.Errorf("send %d: got %s and %s, want one answer", n, first, body)
		}
		left--
	}
	var s success
	if err := json.Unmarshal([]byte(first), &s); err != nil {
		w.t.Errorf("send %d: got %s: %v", n, first, err)
	}
	return s.MessageID
}

// errRetry means that there was no answer, or none that is final: in progress, or an engine timed out.
var errRetry = errors.New("again")

func (w *world) sendOnce(client *http.Client, base string, n int) (body string, err error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), timetest.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/message/send",
		strings.NewReader(sendBody("TEXT", fmt.Sprintf(`{"text":"message %d"}`, n), w.chatID)))
	if err != nil {
		return "", err
	}
	for name, value := range w.keyHeaders(fmt.Sprintf("send-%d", n)) {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", errRetry
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	switch {
	case err != nil, resp.StatusCode == http.StatusConflict, resp.StatusCode == http.StatusServiceUnavailable:
		return "", fmt.Errorf("%w: got %d %s", errRetry, resp.StatusCode, raw)
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("got %d %s, want 200", resp.StatusCode, raw)
	}
	return string(raw), nil
}
