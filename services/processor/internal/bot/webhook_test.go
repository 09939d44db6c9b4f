package bot

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func openWebhook(t *testing.T, h http.HandlerFunc, config ...WebhookConfig) *Webhook {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c := WebhookConfig{}
	if len(config) > 0 {
		c = config[0]
	}
	c.URL, c.Secret, c.Now = server.URL+"/bot?x=1", testSecret, time.Now
	w, err := NewWebhook(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// verified verifies a Standard Webhook as a receiver does, independent of our own code.
func verified(r *http.Request, body []byte) bool {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, r.Header.Get("webhook-id")+"."+r.Header.Get("webhook-timestamp")+"."+string(body))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	seconds, err := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
	return err == nil && time.Since(time.Unix(seconds, 0)).Abs() < time.Minute && hmac.Equal([]byte(want), []byte(r.Header.Get("webhook-signature")))
}

func TestWebhookPostsTheEventAndReadsTheAnswer(t *testing.T) {
	t.Parallel()
	asked := wrote(chat.Text, `{"text":"hello", "n":1.50}`)
	parent := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w := openWebhook(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !verified(r, body) || r.Method != http.MethodPost || r.Header.Get("webhook-id") != asked.Message.ID {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		if string(body) != string(asked.AppendJSON(nil)) || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("traceparent") != parent {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		io.WriteString(rw, `{"messages":[{"type":"TEXT","data":{"text":"hi","n":1.50}},{"type":"IMAGE","data":{"url":"https://example.com/i"}}],"more":1}`)
	})
	answers, err := w.Answer(event.WithTraceParent(t.Context(), parent), asked, nil)
	if err != nil || len(answers.Messages) != 2 {
		t.Fatalf("got %v and %v, want two answers", answers, err)
	}
	if answers.Messages[0].Type != chat.Text || string(answers.Messages[0].Data) != `{"text":"hi","n":1.50,"format":"markdown"}` || answers.Messages[1].Type != chat.Image {
		t.Errorf("got %v, want the webhook's messages, the text as Markdown", answers)
	}
}

func TestWebhookFailuresBecomeCodes(t *testing.T) {
	t.Parallel()
	respond := func(status int, body string, header ...string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			for i := 0; i < len(header); i += 2 {
				rw.Header().Set(header[i], header[i+1])
			}
			rw.WriteHeader(status)
			io.WriteString(rw, body)
		}
	}
	message := `{"type":"TEXT","data":{"text":"x"}}`
	tests := []struct {
		name    string
		handler http.HandlerFunc
		code    apperr.Code
		reason  string
	}{
		{"a fault of the server", respond(500, ""), apperr.Unavailable, "WEBHOOK_AWAY"},
		{"a gateway's timeout", respond(504, ""), apperr.Unavailable, "WEBHOOK_AWAY"},
		{"a request timeout", respond(408, ""), apperr.Unavailable, "WEBHOOK_AWAY"},
		{"too many", respond(429, ""), apperr.TooMany, "WEBHOOK_BUSY"},
		{"a refusal", respond(403, ""), apperr.Invalid, "WEBHOOK_UNAUTHORIZED"},
		{"gone", respond(410, ""), apperr.Invalid, "WEBHOOK_REFUSED"},
		{"a redirect", respond(302, "", "Location", "/elsewhere"), apperr.Invalid, "WEBHOOK_REFUSED"},
		{"no JSON", respond(200, "ok"), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"an array", respond(200, "["+message+"]"), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"a type that widgets do not know", respond(200, `{"messages":[{"type":"POEM","data":{}}]}`), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"a type of visitors'", respond(200, `{"messages":[{"type":"MULTIPLE_CHOICE_REPLY","data":{}}]}`), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"data that is no object", respond(200, `{"messages":[{"type":"TEXT","data":"x"}]}`), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"a text without text", respond(200, `{"messages":[`+message+`,{"type":"TEXT","data":{}}]}`), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"no data", respond(200, `{"messages":[{"type":"TEXT"}]}`), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"too long a name", respond(200, `{"messages":[{"type":"TEXT","data":{"text":"x"},"nameOfSender":"`+strings.Repeat("x", 257)+`"}]}`), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"too many messages", respond(200, `{"messages":[`+strings.Repeat(message+",", maxAnswers)+message+`]}`), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"too much", respond(200, `{"x":"`+strings.Repeat("x", maxAnswer)+`"}`), apperr.Invalid, "WEBHOOK_ANSWER"},
		{"a broken connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, apperr.Unavailable, "SERVICE_UNAVAILABLE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answers, err := openWebhook(t, tt.handler).Answer(t.Context(), wrote(chat.Text, `{"text":"x"}`), nil)
			got, ok := errors.AsType[*apperr.Error](err)
			if !ok || got.Code != tt.code || got.Reason != tt.reason || len(answers.Messages) > 0 {
				t.Errorf("got %v and %v, want %s %s", answers, err, tt.code, tt.reason)
			}
		})
	}
}

func TestWebhookMayAnswerNothing(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", " \n", "{}", `{"messages":[]}`, `{"messages":null}`} {
		answers, err := openWebhook(t, func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, body) }).
			Answer(t.Context(), wrote(chat.Text, `{"text":"x"}`), nil)
		if err != nil || len(answers.Messages) != 0 {
			t.Errorf("for %q got %v and %v, want no answers and no error", body, answers, err)
		}
	}
}

// The answers of a call are kept until the message is forgotten: if publishing them fails, the server is not
// called again.
func TestWebhookKeepsItsAnswers(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	w := openWebhook(t, func(rw http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		io.WriteString(rw, `{"messages":[{"type":"TEXT","data":{"text":"kept"},"nameOfSender":"Ada"}]}`)
	})
	asked := wrote(chat.Text, `{"text":"x"}`)
	for range 2 { // the second time because publishing the first answer failed
		answers, err := w.Answer(t.Context(), asked, nil)
		if err != nil || len(answers.Messages) != 1 || string(answers.Messages[0].Data) != `{"text":"kept","format":"markdown"}` || answers.Messages[0].NameOfSender != "Ada" {
			t.Fatalf("got %v and %v, want the answer from Ada", answers, err)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("got %d calls, want one", calls.Load())
	}
	w.Forget(asked.Message.ID)
	answers, err := w.Answer(t.Context(), asked, nil)
	if err != nil || len(answers.Messages) != 1 || calls.Load() != 2 {
		t.Errorf("got %v and %v after %d calls, want the answer of a second call", answers, err, calls.Load())
	}
}

// A call that exceeds the timeout ends, at the server too, and is repeated with the same webhook-id. Nothing runs
// after the return of Answer.
func TestWebhookCallThatHangsIsRepeated(t *testing.T) {
	t.Parallel()
	ids, ended := make(chan string, 2), make(chan struct{})
	var calls atomic.Int64
	w := openWebhook(t, func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		ids <- r.Header.Get("webhook-id")
		if calls.Add(1) == 1 {
			<-r.Context().Done()
			close(ended)
			return
		}
		io.WriteString(rw, `{"messages":[{"type":"TEXT","data":{"text":"late"}}]}`)
	}, WebhookConfig{CallConfig: CallConfig{Timeout: 500 * time.Millisecond}})
	asked := wrote(chat.Text, `{"text":"x"}`)
	_, err := w.Answer(t.Context(), asked, nil)
	if apperr.ReasonOf(err) != "WEBHOOK_TIMEOUT" || bus.IsPermanent(err) || !strings.Contains(err.Error(), "within 500ms") {
		t.Fatalf("got %v, want a timeout that is retried", err)
	}
	<-ended
	answers, err := w.Answer(t.Context(), asked, nil)
	if err != nil || len(answers.Messages) != 1 {
		t.Errorf("got %v and %v, want the answer of the second call", answers, err)
	}
	if first, second := <-ids, <-ids; first != second || first == "" {
		t.Errorf("got the ids %q and %q, want the same", first, second)
	}
}

func TestWebhookThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{})
	w := openWebhook(t, func(http.ResponseWriter, *http.Request) { <-hanging }, WebhookConfig{CallConfig: CallConfig{Timeout: time.Minute, Deadline: 20 * time.Millisecond}})
	t.Cleanup(func() { close(hanging) })
	for range 2 { // the second time because it was not given up at once
		_, err := w.Answer(t.Context(), wrote(chat.Text, `{"text":"x"}`), nil)
		if !apperr.Is(err, apperr.Unavailable) || apperr.ReasonOf(err) != "WEBHOOK_TIMEOUT" || !bus.IsPermanent(err) {
			t.Errorf("got %v, want a timeout that is permanent", err)
		}
	}
	if n := w.breakers.Open(time.Now()); n != 0 {
		t.Errorf("got %d open breakers, want none: other messages may be answered", n)
	}
}

// A server that answers nothing is not called for long: its calls would take the places of its application.
func TestWebhookThatAlwaysHangsOpensTheBreaker(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{})
	w := openWebhook(t, func(http.ResponseWriter, *http.Request) { <-hanging }, WebhookConfig{CallConfig: CallConfig{Timeout: time.Millisecond}})
	t.Cleanup(func() { close(hanging) })
	for range breakerFailures {
		coded(t, w, wroteTo(appOne))
	}
	if err := coded(t, w, wroteTo(appOne)); err == nil || err.Reason != "WEBHOOK_PAUSED" {
		t.Errorf("the application: got %v, want no call", err)
	}
	if pause := w.breakers.Admit(appTwo, time.Now()); pause != 0 {
		t.Errorf("another application: got a pause of %v, want none", pause)
	}
}

// A call that ends because another process takes over is not given up and counts neither as a failure of the
// server nor as its last attempt.
func TestWebhookCallIsInterrupted(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{})
	ctx, interrupt := context.WithCancel(t.Context())
	w := openWebhook(t, func(http.ResponseWriter, *http.Request) {
		interrupt()
		<-hanging
	}, WebhookConfig{CallConfig: CallConfig{Attempts: 1}})
	t.Cleanup(func() { close(hanging) })
	w.breakers.Failures = 1
	_, err := w.Answer(ctx, wrote(chat.Text, `{"text":"x"}`), nil)
	if apperr.ReasonOf(err) != "WEBHOOK_INTERRUPTED" || bus.IsPermanent(err) || !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("got %v, want an error that is retried", err)
	}
	if n := w.breakers.Open(time.Now()); n != 0 {
		t.Errorf("got %d open breakers, want none", n)
	}
}

// A failed call is repeated with the same webhook-id, up to the configured attempts. A call that the open
// breaker prevents is not an attempt, but ends with the deadline.
func TestWebhookGivesUpAfterItsAttempts(t *testing.T) {
	t.Parallel()
	ids := make(chan string, 10)
	w := openWebhook(t, func(rw http.ResponseWriter, r *http.Request) {
		ids <- r.Header.Get("webhook-id")
		rw.WriteHeader(http.StatusBadGateway)
	}, WebhookConfig{CallConfig: CallConfig{Attempts: 2}})
	now := time.Now()
	w.now = func() time.Time { return now }
	asked := wrote(chat.Text, `{"text":"x"}`)
	try := func() (failure *apperr.Error, permanent bool) {
		_, err := w.Answer(t.Context(), asked, nil)
		failure, ok := errors.AsType[*apperr.Error](err)
		if !ok || apperr.CodeOf(err) == apperr.Invalid {
			t.Fatalf("got %v, want a failure that may pass", err)
		}
		return failure, bus.IsPermanent(err)
	}
	_, first := try()
	_, second := try()
	if first || !second {
		t.Error("got an end at the wrong attempt, want it at the second")
	}
	if first, second := <-ids, <-ids; first != second || first == "" {
		t.Errorf("got the ids %q and %q, want the same", first, second)
	}
	w.Forget(asked.Message.ID)
	w.breakers.Report(w.standard.breaker(asked.AppID), now, true, time.Hour)
	for range 5 {
		if err, permanent := try(); permanent || err.Code != apperr.TooMany || err.RetryAfter > defaultDeadline {
			t.Fatalf("got %+v, want a pause within the deadline", err)
		}
	}
	now = now.Add(defaultDeadline)
	if _, permanent := try(); !permanent {
		t.Error("got no end at the deadline, want one")
	}
	if len(ids) != 0 {
		t.Error("got a call during the pause, want none")
	}
}

// A pause that a server requests applies to all messages, and the bus gets its duration.
func TestWebhookRespectsRetryAfter(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	w := openWebhook(t, func(rw http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		rw.Header().Set("Retry-After", "60")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	for range 5 {
		_, err := w.Answer(t.Context(), wrote(chat.Text, `{"text":"x"}`), nil)
		coded, ok := errors.AsType[*apperr.Error](err)
		if !ok || coded.Code != apperr.TooMany || coded.RetryAfter < 50*time.Second {
			t.Fatalf("got %v, want that it is too much for about a minute", err)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("got %d calls, want the first one only", calls.Load())
	}
}

// Concurrent calls share few connections, and one over HTTP/2.
func TestWebhookReusesConnections(t *testing.T) {
	t.Parallel()
	const together, rounds = 20, 5
	var opened atomic.Int64
	var versions sync.Map
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { versions.Store(r.ProtoMajor, true) }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	w, err := NewWebhook(WebhookConfig{URL: server.URL, Secret: testSecret, CallConfig: CallConfig{Concurrency: 2 * together, Now: time.Now}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	w.client.Transport.(*http.Transport).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	for range rounds {
		var calls sync.WaitGroup
		for range together {
			calls.Go(func() {
				asked := wrote(chat.Text, `{"text":"x"}`)
				asked.Message.ID = uuid.NewString()
				if _, err := w.Answer(t.Context(), asked, nil); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	}
	if _, spoken := versions.Load(2); !spoken {
		t.Error("got no call over HTTP/2, want all")
	}
	if n := opened.Load(); n > together {
		t.Errorf("got %d connections for %d calls, want at most %d", n, together*rounds, together)
	}
}

func TestWebhookConfigNamesAllItsProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []WebhookConfig{
		{},
		{URL: "ftp://example.com", Secret: "whsec_dG9vIHNob3J0"},
		{URL: "/relative", Secret: strings.TrimPrefix(testSecret, "whsec_")},
	} {
		if got := c.Problems(); len(got) != 2 {
			t.Errorf("for %+v got %v, want a problem of the URL and one of the secret", c, got)
		}
	}
}

// Errors go to logs and dead letters: the user and the query of the URL do not.
func TestErrorsHideSecretsOfTheURL(t *testing.T) {
	t.Parallel()
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	w := openWebhook(t, hangUp, WebhookConfig{CallConfig: CallConfig{Attempts: 1}})
	w.standard.url = strings.Replace(w.standard.url, "http://", "http://someone:password@", 1) + "&key=secret"
	_, err := w.Answer(t.Context(), wrote(chat.Text, `{"text":"x"}`), nil)
	for _, secret := range []string{"someone", "password", "key", "secret", "x=1"} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v, want an error without %q", err, secret)
		}
	}
	if !strings.Contains(err.Error(), "/bot") {
		t.Errorf("got %v, want the path of the URL", err)
	}
}
