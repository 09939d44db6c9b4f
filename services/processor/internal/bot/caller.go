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
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/services/processor/internal/retryafter"
	"github.com/parley-chat/parley/services/processor/internal/slots"
)

const (
	defaultTimeout = 10 * time.Second
	// defaultAttempts take about half a minute, with the pauses between them.
	defaultAttempts = 12
	// defaultDeadline is below the two minutes of the stream's duplicate window. So after a crash between the
	// failure text and the dead letter, the visitor still reads the text once.
	defaultDeadline = 90 * time.Second

	defaultConcurrency = 16
	// dialTimeout bounds connecting.
	dialTimeout = 5 * time.Second
	// pingAfter is how long an HTTP/2 connection may be silent before a ping, pingTimeout the time for the pong.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
)

// CallConfig bounds the calls of the server that answers for the bot.
type CallConfig struct {
	// Timeout bounds how long an answer occupies a slot of Concurrency; zero: ten seconds. After that the
	// call continues without a slot, until the deadline, and its late answer is used.
	Timeout time.Duration
	// Deadline and Attempts bound how long and how often a message's calls may fail before it is given up;
	// zero: 90 seconds, 12.
	Deadline    time.Duration
	Attempts    int
	Concurrency int           // messages answered concurrently; zero: 16
	Silence     time.Duration // bound of the silence in a streamed answer before it is interrupted; zero: 30 seconds
	Now         func() time.Time
	Registerer  prometheus.Registerer // nil: no metrics
}

// Problems returns the invalid settings by environment variable.
func (c CallConfig) Problems() []string {
	var problems []string
	for _, d := range []struct {
		name  string
		value int64
	}{{"BOT_WEBHOOK_TIMEOUT", int64(c.Timeout)}, {"BOT_WEBHOOK_DEADLINE", int64(c.Deadline)}, {"the attempts of a call", int64(c.Attempts)}} {
		if d.value < 0 {
			problems = append(problems, d.name+" must not be negative")
		}
	}
	return problems
}

// caller calls a server for messages, at most one call per message at a time. A call that exceeds the timeout
// releases its slot and continues. The bus repeats a failed call until the message has used all attempts or
// its deadline has passed. Applications share the slots, and a message without a slot waits without a handler
// of the bus. While the breaker of an application is open, none of its messages calls the server.
type caller struct {
	what      string   // names the server in errors, such as webhook
	secrets   []string // never repeated in errors
	client    *http.Client
	timeout   time.Duration
	attempts  int
	silence   time.Duration
	exchanges *exchanges
	slots     *slots.Slots // of Concurrency, by application
	breakers  breakers
	metrics   *callMetrics
	now       func() time.Time
	post      postFunc
	admit     func(ctx context.Context, appID string) error // before the first call of a message; nil: all are admitted
}

// postFunc makes one call. ctx ends with the message's deadline.
type postFunc func(ctx context.Context, e event.VisitorMessageAccepted, traceParent string, begin Begin) ([]Answer, error)

// open prepares the calls of a server; what is its name. Errors do not repeat the secrets, even if the server does.
func (c *caller) open(what string, config CallConfig, secrets []string, post postFunc) {
	c.secrets = secrets
	c.what, c.post, c.now, c.silence = what, post, config.Now, cmp.Or(config.Silence, defaultSilence)
	c.timeout, c.attempts = cmp.Or(config.Timeout, defaultTimeout), cmp.Or(config.Attempts, defaultAttempts)
	c.exchanges = newExchanges(cmp.Or(config.Deadline, defaultDeadline))
	concurrency := cmp.Or(config.Concurrency, defaultConcurrency)
	c.client, c.slots = newClient(concurrency), slots.New(concurrency)
	c.metrics = newCallMetrics(what, config.Registerer, func() int { return c.breakers.open(config.Now()) })
}

// Close ends the running calls and the idle connections.
func (c *caller) Close() {
	c.exchanges.close()
	c.client.CloseIdleConnections()
}

// Forget implements [Answerer].
func (c *caller) Forget(messageID string) { c.exchanges.forget(messageID) }

// reason returns the error code for a failure of the server.
func (c *caller) reason(suffix string) string { return strings.ToUpper(c.what) + "_" + suffix }

// named returns a sentence with the server as subject.
func (c *caller) named(rest string) string { return "The " + c.what + " " + rest }

// Answer implements [Answerer].
func (c *caller) Answer(ctx context.Context, e event.VisitorMessageAccepted, begin Begin) ([]Answer, error) {
	x := c.exchanges.of(e.EventID(), c.now())
	if x.call != nil { // it runs since an earlier delivery, and has used its timeout
		return c.await(ctx, x, 0)
	}
	taken, ready := c.slots.TakeOrWait(e.AppID, e.EventID())
	if !taken {
		return nil, c.queued(x, e, ready)
	}
	defer c.slots.Release(e.AppID)
	if pause := c.breakers.admit(e.AppID, c.now()); pause > 0 {
		c.metrics.kept()
		return nil, c.bounded(x, &apperr.Error{
			Code:       apperr.TooMany,
			Reason:     c.reason("PAUSED"),
			Message:    c.named("is not called for now"),
			RetryAfter: jittered(2 * pause),
		})
	}
	if x.calls == 0 && c.admit != nil {
		if err := c.admit(ctx, e.AppID); err != nil {
			return nil, err
		}
	}
	c.start(x, e, event.TraceParent(ctx), begin)
	return c.await(ctx, x, c.timeout)
}

// queueCheck is how often a message that waits for a slot tries again although none was offered: the one that
// was offered a slot may have been forgotten.
const queueCheck = 5 * time.Second

// queued returns the error of a message that waits for a slot, because its application has its share. The
// time of a message begins with its first call.
func (c *caller) queued(x *exchange, e event.VisitorMessageAccepted, ready <-chan struct{}) error {
	if x.calls == 0 {
		c.exchanges.forget(e.EventID())
	}
	return &apperr.Error{
		Code:       apperr.TooMany,
		Reason:     c.reason("QUEUED"),
		Message:    "The message waits for others of its application",
		RetryAfter: queueCheck,
		Ready:      ready,
	}
}

// await returns the result of the running call, or an error if it has none after patience.
func (c *caller) await(ctx context.Context, x *exchange, patience time.Duration) ([]Answer, error) {
	if !x.call.wait(ctx, patience) {
		return nil, &apperr.Error{
			Code: apperr.Unavailable, Reason: c.reason("SLOW"), Message: c.named("has not answered yet"),
			RetryAfter: c.left(x) + time.Second, Ready: x.call.done,
		}
	}
	answers, err := x.call.answers, x.call.err
	if err != nil {
		x.call = nil
		return nil, c.bounded(x, err)
	}
	return answers, nil
}

// left returns how long the message may still be tried.
func (c *caller) left(x *exchange) time.Duration { return c.exchanges.deadline - c.now().Sub(x.began) }

// bounded makes an error final when the message has used all its attempts or its deadline has passed.
func (c *caller) bounded(x *exchange, err error) error {
	coded, ok := errors.AsType[*apperr.Error](err)
	if !ok {
		return err
	}
	bounded := *coded
	left := c.left(x)
	bounded.Final = bounded.Final || left <= 0 || x.calls >= c.attempts
	bounded.RetryAfter = min(bounded.RetryAfter, left)
	return &bounded
}

// jittered returns a random duration from d/2 to d, to spread calls that failed together.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// start starts a call of the server.
func (c *caller) start(x *exchange, e event.VisitorMessageAccepted, traceParent string, begin Begin) {
	running := &call{done: make(chan struct{})}
	x.call = running
	x.calls++
	c.metrics.running.Inc()
	c.exchanges.running.Go(func() {
		defer close(running.done)
		defer c.metrics.running.Dec()
		began := time.Now()
		running.answers, running.err = c.call(x.ctx, e, traceParent, begin)
		c.metrics.called(running.err, time.Since(began))
	})
}

// call calls the server and reports to the breaker. A timeout does not count as a failure of the endpoint.
func (c *caller) call(
	ctx context.Context,
	e event.VisitorMessageAccepted,
	traceParent string,
	begin Begin,
) ([]Answer, error) {
	answers, err := c.post(ctx, e, traceParent, begin)
	if broken, ok := errors.AsType[*interruptedError](err); ok { // the visitor has read a part: that is the answer
		if ctx.Err() == nil {
			c.report(e.AppID, broken.cause)
		}
		return answers, nil
	}
	if ctx.Err() != nil && err != nil {
		return nil, &apperr.Error{
			Code:    apperr.Unavailable,
			Reason:  c.reason("TIMEOUT"),
			Message: c.named("has not answered within " + c.exchanges.deadline.String()),
			Final:   errors.Is(ctx.Err(), context.DeadlineExceeded),
		}
	}
	c.report(e.AppID, err)
	return answers, err
}

// report passes the result of a call to the application's breaker.
func (c *caller) report(appID string, err error) {
	pause := time.Duration(0)
	if coded, ok := errors.AsType[*apperr.Error](err); ok {
		pause = coded.RetryAfter
	}
	c.breakers.report(appID, c.now(), apperr.CodeOf(err) != apperr.Unavailable || err == nil, pause)
}

// newClient returns a client with its own connections, which Close closes. It keeps as many idle ones as
// there are concurrent calls, uses HTTP/2 if the server supports it, and follows no redirect: the message is
// for one address.
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

// do is [http.Client.Do]. Its errors, which are logged and kept with dead letters, show neither the user nor
// the query of the URL: they may be secrets.
func do(client *http.Client, r *http.Request) (*http.Response, error) {
	response, err := client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		shown := url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path}
		failed.URL = shown.String()
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
func (c *caller) refusal(r *http.Response) error {
	status := r.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	text := c.named(fmt.Sprintf("answered %d", status))
	if said := c.excerpt(r.Body); said != "" {
		text += ": " + said
	}
	pause := retryafter.Parse(r.Header, c.now(), maxRetryAfter)
	switch {
	case status == http.StatusTooManyRequests:
		return &apperr.Error{Code: apperr.TooMany, Reason: c.reason("BUSY"), Message: text, RetryAfter: pause}
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return &apperr.Error{Code: apperr.Unavailable, Reason: c.reason("AWAY"), Message: text, RetryAfter: pause}
	}
	return apperr.New(apperr.Invalid, c.reason("REFUSED"), text)
}

// wrongAnswer returns the error for an invalid answer.
func (c *caller) wrongAnswer(what string, cause error) error {
	return apperr.New(apperr.Invalid, c.reason("ANSWER"), "The "+c.what+"'s answer "+what).Wrap(cause)
}
