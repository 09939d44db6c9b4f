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
	"net"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

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

	defaultTimeout = 10 * time.Second
	// defaultAttempts are about half a minute, with the pauses between them.
	defaultAttempts = 12
	// defaultDeadline is below the two minutes in which a stream drops what was published before. So also after a crash between the
	// failure text and the dead letter the visitor reads the text once.
	defaultDeadline = 90 * time.Second

	defaultConcurrency = 16
	// dialTimeout is how long a connection may take.
	dialTimeout = 5 * time.Second
	// pingAfter is after how long without a frame an HTTP/2 connection is asked whether it lives, pingTimeout how long it has to answer.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
)

// WebhookConfig says which server answers in the bot's place.
type WebhookConfig struct {
	URL    string // http or https
	Secret string // whsec_ and the key in base64
	// Timeout is how long an answer is waited for in a place of Concurrency; zero: ten seconds. Then the call goes on without one, until
	// the deadline, and its late answer counts.
	Timeout time.Duration
	// Deadline and Attempts are for how long and how often a message's calls may fail before it is given up; zero: 90 seconds, 12.
	Deadline    time.Duration
	Attempts    int
	Concurrency int // messages that are answered at once; zero: 16
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
	for _, d := range []struct {
		name  string
		value int64
	}{{"BOT_WEBHOOK_TIMEOUT", int64(c.Timeout)}, {"BOT_WEBHOOK_DEADLINE", int64(c.Deadline)}, {"BOT_WEBHOOK_ATTEMPTS", int64(c.Attempts)}} {
		if d.value < 0 {
			problems = append(problems, d.name+" must not be negative")
		}
	}
	return problems
}

// Webhook lets another server answer: every message of a visitor is posted to it, signed as Standard Webhooks, with the
// event's JSON as body. The answer may hold {"messages":[{"type":...,"data":{...}}]}, which become replies, and "handover", which gives the chat to
// the agents.
//
// A retry carries the same webhook-id, so that the server can tell it from a new message. For one message at most one call runs. A call
// that takes longer than the timeout gives up its place among those that are waited for and goes on: the server is not asked again, and its
// late answer counts. A call that fails is repeated by the bus, until the message has had all its attempts or its deadline has
// passed; then it is given up. A server that refuses is not asked again. While a server does not answer at all, or has asked for a
// pause, no message calls it.
type Webhook struct {
	url       string
	signer    signer
	client    *http.Client
	timeout   time.Duration
	attempts  int
	exchanges *exchanges
	breaker   breaker
	metrics   *webhookMetrics
	now       func() time.Time
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
	w := &Webhook{
		url: c.URL, signer: s, now: c.Now, timeout: cmp.Or(c.Timeout, defaultTimeout), attempts: cmp.Or(c.Attempts, defaultAttempts),
		exchanges: newExchanges(cmp.Or(c.Deadline, defaultDeadline)), client: newClient(cmp.Or(c.Concurrency, defaultConcurrency)),
	}
	w.metrics = newWebhookMetrics(c.Registerer, func() bool { return w.breaker.isOpen(c.Now()) })
	return w, nil
}

// newClient has connections of its own, so that Close ends nobody else's. It keeps as many as there are calls at once, speaks HTTP/2
// where the server does, and follows no redirect: the message was signed for one address.
func newClient(concurrency int) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = concurrency, concurrency
	transport.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	transport.ForceAttemptHTTP2 = true
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close ends the calls that run and the idle connections.
func (w *Webhook) Close() {
	w.exchanges.close()
	w.client.CloseIdleConnections()
}

// Forget implements [Answerer].
func (w *Webhook) Forget(messageID string) { w.exchanges.forget(messageID) }

// Answer implements [Answerer].
func (w *Webhook) Answer(ctx context.Context, e event.VisitorMessageAccepted) ([]Answer, error) {
	x := w.exchanges.of(e.EventID(), w.now())
	patience := time.Duration(0) // a call that runs since an earlier turn has had its time
	if x.call == nil {
		if pause := w.breaker.admit(w.now()); pause > 0 {
			w.metrics.kept()
			return nil, w.bounded(x, &apperr.Error{
				Code: apperr.TooMany, Reason: "WEBHOOK_PAUSED", Message: "The webhook is not called for now", RetryAfter: jittered(2 * pause),
			})
		}
		w.start(x, e, event.TraceParent(ctx))
		patience = w.timeout
	}
	if !x.call.wait(ctx, patience) {
		return nil, &apperr.Error{
			Code: apperr.Unavailable, Reason: "WEBHOOK_SLOW", Message: "The webhook has not answered yet",
			RetryAfter: w.left(x) + time.Second, Ready: x.call.done,
		}
	}
	answers, err := x.call.answers, x.call.err
	if err != nil {
		x.call = nil
		return nil, w.bounded(x, err)
	}
	return answers, nil
}

// left is how long the message may still be tried.
func (w *Webhook) left(x *exchange) time.Duration { return w.exchanges.deadline - w.now().Sub(x.began) }

// bounded makes an error final when the message has had all its attempts or all its time.
func (w *Webhook) bounded(x *exchange, err error) error {
	coded, ok := errors.AsType[*apperr.Error](err)
	if !ok {
		return err
	}
	bounded := *coded
	left := w.left(x)
	bounded.Final = bounded.Final || left <= 0 || x.calls >= w.attempts
	bounded.RetryAfter = min(bounded.RetryAfter, left)
	return &bounded
}

// jittered spreads calls that failed together: it returns half of d to all of it.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// start calls the server.
func (w *Webhook) start(x *exchange, e event.VisitorMessageAccepted, traceParent string) {
	c := &call{done: make(chan struct{})}
	x.call = c
	x.calls++
	w.metrics.running.Inc()
	w.exchanges.running.Go(func() {
		defer close(c.done)
		defer w.metrics.running.Dec()
		began := time.Now()
		c.answers, c.err = w.post(x.ctx, e, traceParent)
		w.metrics.called(c.err, time.Since(began))
	})
}

// post calls the server and tells the breaker. An answer that has not come in time says nothing about the next one.
func (w *Webhook) post(ctx context.Context, e event.VisitorMessageAccepted, traceParent string) ([]Answer, error) {
	answers, err := w.exchange(ctx, e, traceParent)
	if ctx.Err() != nil && err != nil {
		return nil, &apperr.Error{
			Code: apperr.Unavailable, Reason: "WEBHOOK_TIMEOUT", Message: "The webhook has not answered within " + w.exchanges.deadline.String(),
			Final: errors.Is(ctx.Err(), context.DeadlineExceeded),
		}
	}
	pause := time.Duration(0)
	if coded, ok := errors.AsType[*apperr.Error](err); ok {
		pause = coded.RetryAfter
	}
	w.breaker.report(w.now(), apperr.CodeOf(err) != apperr.Unavailable || err == nil, pause)
	return answers, err
}

func (w *Webhook) exchange(ctx context.Context, e event.VisitorMessageAccepted, traceParent string) ([]Answer, error) {
	request, err := w.request(ctx, e, traceParent)
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

func (w *Webhook) request(ctx context.Context, e event.VisitorMessageAccepted, traceParent string) (*http.Request, error) {
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
	if traceParent != "" {
		h.Set("traceparent", traceParent)
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
		Messages []Answer        `json:"messages"`
		Handover json.RawMessage `json:"handover"`
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
		if utf8.RuneCountInString(m.NameOfSender) > chat.MaxLabelLength {
			return nil, wrongAnswer(fmt.Sprintf("has a nameOfSender of more than %d characters in messages[%d]", chat.MaxLabelLength, i), nil)
		}
	}
	handover, err := parseHandover(answer.Handover)
	return append(answer.Messages, handover...), err
}

func wrongAnswer(what string, cause error) error {
	return apperr.New(apperr.Invalid, "WEBHOOK_ANSWER", "The webhook's answer "+what).Wrap(cause)
}
