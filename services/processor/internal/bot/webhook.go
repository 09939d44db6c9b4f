package bot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
)

const (
	// maxAnswer is how large the body of a webhook's answer may be, in bytes.
	maxAnswer = 256 << 10
	// maxAnswers is how many messages one webhook may answer with.
	maxAnswers = 10
	// defaultTimeout ends a call that is not answered, defaultDeadline the calls for one message.
	defaultTimeout  = 10 * time.Second
	defaultDeadline = 30 * time.Second
	// Between two calls for one message there is a pause, which doubles.
	firstPause = 100 * time.Millisecond
	mostPause  = 5 * time.Second

	defaultConcurrency = 16
	// pingAfter is after how long without a frame an HTTP/2 connection is asked whether it lives, pingTimeout how long it has to answer.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
)

// WebhookConfig says which server answers in the bot's place.
type WebhookConfig struct {
	URL     string        // http or https
	Secret  string        // whsec_ and the key in base64
	Timeout time.Duration // of one call; zero: ten seconds
	// Deadline is how long calls are repeated for one message; zero: thirty seconds. Then the message goes back to the bus, which
	// tries again later.
	Deadline    time.Duration
	Concurrency int // calls at once; zero: 16
	Now         func() time.Time
	Registerer  prometheus.Registerer // nil: no metrics
}

// Problems names what is wrong with the URL and the secret, by environment variable.
func (c WebhookConfig) Problems() []string {
	var problems []string
	if !config.WebURL(c.URL) {
		problems = append(problems, "BOT_WEBHOOK_URL must be an http or https URL when BOT=webhook")
	}
	if _, err := newSigner(c.Secret); err != nil {
		problems = append(problems, "BOT_WEBHOOK_SECRET must be "+err.Error()+" when BOT=webhook")
	}
	if c.Deadline < 0 {
		problems = append(problems, "BOT_WEBHOOK_DEADLINE must not be negative")
	}
	return problems
}

// Webhook lets another server answer: every message of a visitor is posted to it, signed as Standard Webhooks, with the
// event's JSON as body. The answer may hold {"messages":[{"type":...,"data":{...}}]}, which become replies.
//
// A try again carries the same webhook-id, so that the server can tell it from a new message. A server that is away or overloaded is
// asked again, with growing pauses, until the deadline; then the bus puts the message back and tries later. One that refuses is not
// asked again. While a server does not answer at all, or has asked for a pause, no message calls it.
type Webhook struct {
	url      string
	signer   signer
	client   *http.Client
	deadline time.Duration
	breaker  breaker
	metrics  *webhookMetrics
	now      func() time.Time
}

// NewWebhook returns a webhook that has opened no connection yet.
func NewWebhook(c WebhookConfig) (*Webhook, error) {
	if problems := c.Problems(); len(problems) > 0 {
		return nil, errors.New(problems[0])
	}
	s, err := newSigner(c.Secret)
	if err != nil {
		return nil, err
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	w := &Webhook{
		url: c.URL, signer: s, now: c.Now, deadline: cmp.Or(c.Deadline, defaultDeadline),
		client: newClient(c.Timeout, cmp.Or(c.Concurrency, defaultConcurrency)),
	}
	w.metrics = newWebhookMetrics(c.Registerer, func() bool { return w.breaker.isOpen(c.Now()) })
	return w, nil
}

// newClient has connections of its own, so that Close ends nobody else's. It keeps as many as there are calls at once, speaks HTTP/2
// where the server does, and follows no redirect: the message was signed for one address.
func newClient(timeout time.Duration, concurrency int) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = concurrency, concurrency
	transport.ForceAttemptHTTP2 = true
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	return &http.Client{
		Timeout:       timeout,
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close ends the idle connections.
func (w *Webhook) Close() { w.client.CloseIdleConnections() }

// Answer implements [Answerer].
func (w *Webhook) Answer(ctx context.Context, e event.VisitorMessageAccepted) ([]Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, w.deadline)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		answers, err := w.call(ctx, e)
		if err == nil || !passes(err) || !wait(ctx, jittered(pause)) {
			return answers, err
		}
	}
}

// passes reports whether another call within the deadline may succeed. Who asks for a pause gets it from the bus, which then keeps
// no place for the message.
func passes(err error) bool {
	coded, ok := errors.AsType[*apperr.Error](err)
	return ok && (coded.Code == apperr.Unavailable || coded.Code == apperr.TooMany) && coded.RetryAfter == 0
}

// wait returns false where ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jittered spreads calls that failed together: it returns half of d to all of it.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// call calls the server once, unless it is known to be away.
func (w *Webhook) call(ctx context.Context, e event.VisitorMessageAccepted) ([]Answer, error) {
	if pause := w.breaker.admit(w.now()); pause > 0 {
		w.metrics.kept()
		return nil, &apperr.Error{
			Code: apperr.TooMany, Reason: "WEBHOOK_PAUSED", Message: "The webhook is not called for now", RetryAfter: jittered(2 * pause),
		}
	}
	began := time.Now()
	answers, err := w.post(ctx, e)
	coded, _ := errors.AsType[*apperr.Error](err)
	pause := time.Duration(0)
	if coded != nil {
		pause = coded.RetryAfter
	}
	w.breaker.report(w.now(), apperr.CodeOf(err) != apperr.Unavailable || err == nil, pause)
	w.metrics.called(err, time.Since(began))
	return answers, err
}

func (w *Webhook) post(ctx context.Context, e event.VisitorMessageAccepted) ([]Answer, error) {
	request, err := w.request(ctx, e)
	if err != nil {
		return nil, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, away(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err := refusal(response, w.now()); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, away(fmt.Errorf("reading the answer: %w", err))
	}
	return parseAnswers(body)
}

// away is a server that has not answered. It has not said for how long.
func away(cause error) error {
	err := apperr.Away("webhook", cause)
	err.RetryAfter = 0
	return err
}

func (w *Webhook) request(ctx context.Context, e event.VisitorMessageAccepted) (*http.Request, error) {
	body := e.AppendJSON(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the webhook's request: %w", err)
	}
	timestamp, signature := w.signer.sign(e.EventID(), w.now(), body)
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Parley-Webhook/1.0")
	h.Set("webhook-id", e.EventID())
	h.Set("webhook-timestamp", timestamp)
	h.Set("webhook-signature", signature)
	h.Set("ce-type", e.Type())
	if parent := event.TraceParent(ctx); parent != "" {
		h.Set("traceparent", parent)
	}
	return request, nil
}

// refusal is the one table from a webhook's status to a code: nil for an answer, Unavailable or TooMany for what may
// pass, Invalid for what will not.
func refusal(r *http.Response, now time.Time) error {
	status := r.StatusCode
	said := fmt.Sprintf("The webhook answered %d", status)
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusTooManyRequests:
		return &apperr.Error{Code: apperr.TooMany, Reason: "WEBHOOK_BUSY", Message: said, RetryAfter: retryAfter(r, now)}
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return &apperr.Error{Code: apperr.Unavailable, Reason: "WEBHOOK_AWAY", Message: said, RetryAfter: retryAfter(r, now)}
	}
	return apperr.New(apperr.Invalid, "WEBHOOK_REFUSED", said)
}

// retryAfter reads both forms of the header (RFC 9110 section 10.2.3); zero when there is none that makes sense.
func retryAfter(r *http.Response, now time.Time) time.Duration {
	value := r.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 && seconds <= 24*60*60 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// parseAnswers reads the body of a 2xx. It holds the messages to what a company may send, because that is what widgets can
// show; a wrong one fails all, since half of an answer may say the opposite.
func parseAnswers(body []byte) ([]Answer, error) {
	if len(body) > maxAnswer {
		return nil, wrongAnswer(fmt.Sprintf("is larger than %d bytes", maxAnswer), nil)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil
	}
	var answer struct {
		Messages []Answer `json:"messages"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, wrongAnswer("is not a JSON object of messages", err)
	}
	if len(answer.Messages) > maxAnswers {
		return nil, wrongAnswer(fmt.Sprintf("holds more than %d messages", maxAnswers), nil)
	}
	for i, m := range answer.Messages {
		if !m.Type.In(chat.CompanyTypes()) {
			return nil, wrongAnswer(fmt.Sprintf("has a wrong type in messages[%d]", i), nil)
		}
		if faults := chat.ValidateData(m.Type, m.Data); len(faults) > 0 {
			return nil, wrongAnswer(fmt.Sprintf("is wrong in messages[%d].%s: %s", i, faults[0].Field, faults[0].Message), nil)
		}
	}
	return answer.Messages, nil
}

func wrongAnswer(what string, cause error) error {
	return apperr.New(apperr.Invalid, "WEBHOOK_ANSWER", "The webhook's answer "+what).Wrap(cause)
}
