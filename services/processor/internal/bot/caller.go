package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/services/processor/internal/breaker"
	"github.com/parley-chat/parley/services/processor/internal/retryafter"
)

const (
	// defaultAttempts take about half a minute, with the pauses between them.
	defaultAttempts = 12
	// defaultDeadline is below the two minutes of the stream's duplicate window. So after a crash between the
	// failure text and the dead letter, the visitor still reads the text once.
	defaultDeadline = 90 * time.Second

	defaultConcurrency = 16
	// dialTimeout bounds connecting.
	dialTimeout = 5 * time.Second
	// placeWait is the longest pause of a message that waits for a place among the calls of its application.
	placeWait = 500 * time.Millisecond
	// pingAfter is how long an HTTP/2 connection may be silent before a ping, pingTimeout the time for the pong.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second

	// breakerFailures is the number of consecutive failures that open the breaker of an application and its server.
	breakerFailures = 20
	// maxRetryAfter bounds a requested pause: afterwards one call asks whether it still holds.
	maxRetryAfter = 5 * time.Minute
)

// CallConfig bounds the calls of the server that answers for the bot.
type CallConfig struct {
	// Timeout bounds one call, with its whole answer; zero: only the deadline does.
	Timeout time.Duration
	// Deadline and Attempts bound how long and how often a message's calls may fail before it is given up;
	// zero: 90 seconds, 12.
	Deadline time.Duration
	Attempts int
	// Concurrency is the number of calls that run at once, for the idle connections; zero: 16.
	Concurrency int
	// Silence is the bound of the silence in a streamed answer before it is interrupted; zero: 30 seconds.
	Silence    time.Duration
	Bounds     *Bounds  // of companies; nil: none
	Log        *CallLog // nil: no call is logged
	Now        func() time.Time
	Registerer prometheus.Registerer // nil: no metrics
}

// Problems returns the invalid settings by environment variable.
func (c CallConfig) Problems() []string {
	var problems []string
	if c.Timeout < 0 {
		problems = append(problems, "BOT_WEBHOOK_TIMEOUT must not be negative")
	}
	if c.Deadline < 0 {
		problems = append(problems, "BOT_WEBHOOK_DEADLINE must not be negative")
	}
	if c.Attempts < 0 {
		problems = append(problems, "the attempts of a call must not be negative")
	}
	return problems
}

// target is a server that answers, with the settings by which it is asked. It does not change.
type target struct {
	url      string
	client   *http.Client
	hidden   []string // what errors must not repeat, see [excerpt.Secrets]
	deadline time.Duration

	secrets []webhook.Secret // sign the requests to a webhook
	apiKey  string           // of a language model; empty: none
	model   bots.ModelSettings
	tools   []toolServer // of the model

	kind     bots.Kind // Webhook or Model
	own      bool      // a server of the company, not of the operator
	version  int       // of the application's bot; 0: it has none
	bounds   bots.Bounds
	handOver bool // to the agents, when a bound is reached
	test     bool // of settings that are not published
}

// of returns the target for the version of an application's bot.
func (t *target) of(v bots.Version) *target {
	own := *t
	own.version = v.Number
	own.bounds = v.Settings.Bounds
	own.handOver = v.Settings.Handover.OnFailure
	return &own
}

// ofCompany marks the server as one of the company.
func (t *target) ofCompany() *target {
	t.own = true
	return t
}

// breaker returns the name of the breaker of the target's calls for an application.
func (t *target) breaker(appID string) string { return appID + " " + t.url }

// caller is the [Answerer] of a server. [Webhook] and [LLM] embed it: a message comes in through Answer and call,
// which bound and measure the calls; post, a method of the embedding type, makes one of them. The bus bounds how many
// calls are made at once and shares that number between applications; it repeats a failed call until the message has
// used all attempts or its deadline has passed. While the breaker of an application is open, none of its messages
// calls the server.
type caller struct {
	what      string       // names the server in errors, such as webhook
	standard  *target      // the operator's server; nil: none
	client    *http.Client // for the operator's server
	timeout   time.Duration
	deadline  time.Duration // of a message, if its target has none
	attempts  int
	silence   time.Duration
	exchanges exchanges
	breakers  breaker.Set // by [target.breaker]
	metrics   *callMetrics
	now       func() time.Time
	post      postFunc
	bounds    *Bounds
	log       *CallLog
	// prepare is called before the first call of a message, and admit then; nil: all are admitted.
	prepare func(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) error
	admit   func(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) error
}

// postFunc makes one call of an exchange. ctx ends with the call's timeout or when another process takes over.
type postFunc func(ctx context.Context, x *exchange, e event.VisitorMessageAccepted, begin Begin) (Result, error)

// open prepares the calls of a kind of server; what is its name.
func (c *caller) open(what string, config CallConfig, post postFunc) {
	c.deadline = cmp.Or(config.Deadline, defaultDeadline)
	c.what = what
	c.breakers.Failures = breakerFailures
	c.post = post
	c.now = config.Now
	c.silence = cmp.Or(config.Silence, defaultSilence)
	c.timeout = config.Timeout
	c.bounds = config.Bounds
	c.log = config.Log
	c.attempts = cmp.Or(config.Attempts, defaultAttempts)
	c.client = newClient(cmp.Or(config.Concurrency, defaultConcurrency))
	c.metrics = newCallMetrics(what, config.Registerer, func() int { return c.breakers.Open(config.Now()) })
}

// Close ends the idle connections. No message may be answered any more.
func (c *caller) Close() { c.client.CloseIdleConnections() }

// Forget implements [Answerer].
func (c *caller) Forget(messageID string) { c.exchanges.forget(messageID) }

// reason returns the error code for a failure of the server.
func (c *caller) reason(suffix string) string { return strings.ToUpper(c.what) + "_" + suffix }

// named returns a sentence with the server as subject.
func (c *caller) named(rest string) string { return "The " + c.what + " " + rest }

// Answer implements [Answerer] with the operator's server.
func (c *caller) Answer(ctx context.Context, e event.VisitorMessageAccepted, begin Begin) (Result, error) {
	return c.answer(ctx, c.standard, e, begin)
}

// answer asks a server, or the one that the message was begun with. It makes at most one call, and holds its place of
// the bot's concurrency until the call has ended.
func (c *caller) answer(
	ctx context.Context, t *target, e event.VisitorMessageAccepted, begin Begin,
) (Result, error) {
	x := c.exchanges.of(e.EventID(), t, c.now())
	if x.answered {
		return x.result, nil
	}
	if x.remaining(c.now()) <= 0 {
		return Result{}, c.bounded(x, c.timedOut(x.target.deadline))
	}
	release, ok := c.bounds.place(x.target, e.AppID)
	if !ok {
		c.metrics.kept()
		return Result{}, c.bounded(x, &apperr.Error{
			Code:       apperr.TooMany,
			Reason:     c.reason("CALLS_AT_ONCE"),
			Message:    c.named("is called as often at once as the application allows"),
			RetryAfter: jittered(placeWait),
		})
	}
	defer release()
	if wait := c.breakers.Admit(x.target.breaker(e.AppID), c.now()); wait > 0 {
		c.metrics.kept()
		return Result{}, c.bounded(x, &apperr.Error{
			Code:       apperr.TooMany,
			Reason:     c.reason("PAUSED"),
			Message:    c.named("is not called for now"),
			RetryAfter: jittered(2 * wait),
		})
	}
	admitted, err := c.begin(ctx, x, e)
	if err != nil {
		return Result{}, err
	}
	if !admitted {
		return x.end(exhausted(x.target)), nil
	}
	x.calls++
	result, err := c.call(ctx, x, e, begin)
	c.bounds.settle(ctx, x, e)
	switch {
	case err == nil:
		return x.end(result), nil
	case ctx.Err() != nil:
		return Result{}, err // the next reader of the partition calls again, so this process does not give up
	}
	return Result{}, c.bounded(x, err)
}

// begin prepares a message and admits it, before its first call. It reports false if a bound of the company is reached.
func (c *caller) begin(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) (admitted bool, err error) {
	if x.admitted {
		return true, nil
	}
	if c.prepare != nil {
		if err := c.prepare(ctx, x, e); err != nil {
			return false, c.bounded(x, err)
		}
	}
	if ok, err := c.bounds.admit(ctx, x, e); err != nil || !ok {
		return false, c.bounded(x, err)
	}
	if c.admit != nil {
		if err := c.admit(ctx, x, e); err != nil {
			c.bounds.giveBack(ctx, x, e)
			return false, err
		}
	}
	x.admitted = true
	return true, nil
}

// bounded makes an error permanent when the message has used all its attempts or its deadline has passed.
func (c *caller) bounded(x *exchange, err error) error {
	coded, ok := errors.AsType[*apperr.Error](err)
	if !ok {
		return err // also nil
	}
	remaining := x.remaining(c.now())
	bounded := *coded
	bounded.RetryAfter = max(0, min(bounded.RetryAfter, remaining))
	if remaining <= 0 || x.calls >= c.attempts {
		return bus.Permanent(&bounded)
	}
	return &bounded
}

// jittered returns a random duration from d/2 to d, to spread calls that failed together.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// call calls the server until the timeout or the message's deadline, measures the call and reports it to the
// breaker.
func (c *caller) call(
	ctx context.Context,
	x *exchange,
	e event.VisitorMessageAccepted,
	begin Begin,
) (Result, error) {
	deadline := x.target.deadline
	timeout := cmp.Or(c.timeout, deadline)
	remaining := x.remaining(c.now())
	calling, cancel := context.WithTimeout(ctx, min(timeout, remaining))
	if remaining <= timeout {
		timeout = deadline // for the error: the message has had all of its time
	}
	defer cancel()
	c.metrics.running.Inc()
	defer c.metrics.running.Dec()
	began := time.Now()
	result, err := c.post(calling, x, e, begin)
	broken, interrupted := errors.AsType[*interruptedError](err)
	switch {
	case interrupted: // the visitor has read a part: that is the answer
		if calling.Err() == nil {
			c.report(x, e.AppID, broken.cause)
		}
		err = nil
	case err != nil && ctx.Err() != nil:
		err = c.interrupted()
	case err != nil && calling.Err() != nil:
		err = c.timedOut(timeout)
		c.report(x, e.AppID, err)
	default:
		c.report(x, e.AppID, err)
	}
	took := time.Since(began)
	c.metrics.called(err, took)
	if interrupted {
		c.log.add(ctx, x, e, outcome{result, broken.cause, took})
	} else {
		c.log.add(ctx, x, e, outcome{result, err, took})
	}
	return result, err
}

// timedOut returns the error of a message that the server has not answered in time.
func (c *caller) timedOut(after time.Duration) error {
	return apperr.New(apperr.Unavailable, c.reason("TIMEOUT"), c.named("has not answered within "+after.String()))
}

// interrupted returns the error of a call that was ended because another process takes over.
func (c *caller) interrupted() error {
	return apperr.New(apperr.Unavailable, c.reason("INTERRUPTED"), c.named("is called again by another process"))
}

// report passes the result of a call to the breaker of the target and the application.
func (c *caller) report(x *exchange, appID string, err error) {
	pause := time.Duration(0)
	if coded, ok := errors.AsType[*apperr.Error](err); ok {
		pause = coded.RetryAfter
	}
	name := x.target.breaker(appID)
	c.breakers.Report(name, c.now(), apperr.CodeOf(err) != apperr.Unavailable || err == nil, pause)
}

// newClient returns a client with its own connections, which Close closes. It keeps as many idle ones as
// there are concurrent calls, uses HTTP/2 if the server supports it, and follows no redirect: the message is
// for one address.
func newClient(concurrency int) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = concurrency
	transport.MaxIdleConnsPerHost = concurrency
	transport.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	transport.ForceAttemptHTTP2 = true
	transport.HTTP2 = pings()
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// pings finds connections that are silently broken.
func pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
}

// do is [http.Client.Do]. Its errors, which are logged and kept with dead letters, show neither the user nor
// the query of the URL: they may be secrets.
func do(client *http.Client, r *http.Request) (*http.Response, error) {
	response, err := client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		failed.URL = shownURL(r.URL)
	}
	return response, err
}

// unavailable returns the error for a server that did not answer and has set no Retry-After.
func (c *caller) unavailable(cause error) error {
	err := apperr.Unreachable(c.what, cause)
	err.RetryAfter = 0
	return err
}

// refusal is the one table from a server's status to a code: nil for success, Unavailable or TooMany for
// temporary errors, Invalid for permanent ones. Its message has the beginning of what the server said: the
// dead letter and the log show it.
func (c *caller) refusal(t *target, r *http.Response) error {
	status := r.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	text := c.named(fmt.Sprintf("answered %d", status))
	if said := t.excerpt(r.Body); said != "" {
		text += ": " + said
	}
	pause := retryafter.Parse(r.Header, c.now(), maxRetryAfter)
	switch {
	case status == http.StatusTooManyRequests:
		return &apperr.Error{Code: apperr.TooMany, Reason: c.reason("BUSY"), Message: text, RetryAfter: pause}
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return &apperr.Error{Code: apperr.Unavailable, Reason: c.reason("AWAY"), Message: text, RetryAfter: pause}
	}
	reason := "REFUSED"
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		reason = "UNAUTHORIZED"
	case http.StatusNotFound:
		reason = "NOT_FOUND"
	}
	return apperr.New(apperr.Invalid, c.reason(reason), text)
}

// wrongAnswer returns the error for an invalid answer.
func (c *caller) wrongAnswer(what string, cause error) error {
	return apperr.New(apperr.Invalid, c.reason("ANSWER"), "The "+c.what+"'s answer "+what).Wrap(cause)
}
