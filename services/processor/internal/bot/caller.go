package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
)

const (
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

// CallConfig bounds the calls of a server that answers in the bot's place.
type CallConfig struct {
	// Timeout is how long an answer is waited for in a place of Concurrency; zero: ten seconds. Then the call goes on without one, until
	// the deadline, and its late answer counts.
	Timeout time.Duration
	// Deadline and Attempts are for how long and how often a message's calls may fail before it is given up; zero: 90 seconds, 12.
	Deadline    time.Duration
	Attempts    int
	Concurrency int           // messages that are answered at once; zero: 16
	Silence     time.Duration // after which an answer in the middle of which nothing comes is interrupted; zero: 30 seconds
	Now         func() time.Time
	Registerer  prometheus.Registerer // nil: no metrics
}

// Problems names what is wrong, by environment variable.
func (c CallConfig) Problems() []string {
	var problems []string
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

// caller calls a server for messages: at most one call for a message at a time. A call that takes longer than the timeout gives up its
// place among those that are waited for and goes on. A call that fails is repeated by the bus, until the message has had all its attempts
// or its deadline has passed. While the server does not answer at all, or has asked for a pause, no message calls it.
type caller struct {
	what      string // calls the server in errors, such as webhook
	client    *http.Client
	timeout   time.Duration
	attempts  int
	silence   time.Duration
	exchanges *exchanges
	breaker   breaker
	metrics   *callMetrics
	now       func() time.Time
	post      postFunc
}

// postFunc makes one call. ctx ends with the message's deadline.
type postFunc func(ctx context.Context, e event.VisitorMessageAccepted, traceParent string, begin Begin) ([]Answer, error)

// open prepares the calls of a server; what is its name.
func (c *caller) open(what string, config CallConfig, post postFunc) {
	c.what, c.post, c.now, c.silence = what, post, config.Now, cmp.Or(config.Silence, defaultSilence)
	c.timeout, c.attempts = cmp.Or(config.Timeout, defaultTimeout), cmp.Or(config.Attempts, defaultAttempts)
	c.exchanges = newExchanges(cmp.Or(config.Deadline, defaultDeadline))
	c.client = newClient(cmp.Or(config.Concurrency, defaultConcurrency))
	c.metrics = newCallMetrics(what, config.Registerer, func() bool { return c.breaker.isOpen(config.Now()) })
}

// Close ends the calls that run and the idle connections.
func (c *caller) Close() {
	c.exchanges.close()
	c.client.CloseIdleConnections()
}

// Forget implements [Answerer].
func (c *caller) Forget(messageID string) { c.exchanges.forget(messageID) }

// reason is the machine word of an error of the server's.
func (c *caller) reason(suffix string) string { return strings.ToUpper(c.what) + "_" + suffix }

// named begins a sentence about the server.
func (c *caller) named(rest string) string { return "The " + c.what + " " + rest }

// Answer implements [Answerer].
func (c *caller) Answer(ctx context.Context, e event.VisitorMessageAccepted, begin Begin) ([]Answer, error) {
	x := c.exchanges.of(e.EventID(), c.now())
	patience := time.Duration(0) // a call that runs since an earlier turn has had its time
	if x.call == nil {
		if pause := c.breaker.admit(c.now()); pause > 0 {
			c.metrics.kept()
			return nil, c.bounded(x, &apperr.Error{
				Code: apperr.TooMany, Reason: c.reason("PAUSED"), Message: c.named("is not called for now"), RetryAfter: jittered(2 * pause),
			})
		}
		c.start(x, e, event.TraceParent(ctx), begin)
		patience = c.timeout
	}
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

// left is how long the message may still be tried.
func (c *caller) left(x *exchange) time.Duration { return c.exchanges.deadline - c.now().Sub(x.began) }

// bounded makes an error final when the message has had all its attempts or all its time.
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

// jittered spreads calls that failed together: it returns half of d to all of it.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// start calls the server.
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
func (c *caller) call(ctx context.Context, e event.VisitorMessageAccepted, traceParent string, begin Begin) ([]Answer, error) {
	answers, err := c.post(ctx, e, traceParent, begin)
	if broken, ok := errors.AsType[*interruptedError](err); ok { // the visitor has read a part: that is the answer
		if ctx.Err() == nil {
			c.report(broken.cause)
		}
		return answers, nil
	}
	if ctx.Err() != nil && err != nil {
		return nil, &apperr.Error{
			Code: apperr.Unavailable, Reason: c.reason("TIMEOUT"), Message: c.named("has not answered within " + c.exchanges.deadline.String()),
			Final: errors.Is(ctx.Err(), context.DeadlineExceeded),
		}
	}
	c.report(err)
	return answers, err
}

// report passes the result of a call to the breaker.
func (c *caller) report(err error) {
	pause := time.Duration(0)
	if coded, ok := errors.AsType[*apperr.Error](err); ok {
		pause = coded.RetryAfter
	}
	c.breaker.report(c.now(), apperr.CodeOf(err) != apperr.Unavailable || err == nil, pause)
}

// newClient has its own connections, which Close closes. It keeps as many idle ones as there are concurrent calls, uses HTTP/2 if the
// server does, and follows no redirect: the message is for one address.
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

// away is a server that has not answered. It has not said for how long.
func (c *caller) away(cause error) error {
	err := apperr.Away(c.what, cause)
	err.RetryAfter = 0
	return err
}

// refusal is the one table from a server's status to a code: nil for an answer, Unavailable or TooMany for what may
// pass, Invalid for what will not.
func (c *caller) refusal(r *http.Response) error {
	status := r.StatusCode
	said := c.named(fmt.Sprintf("answered %d", status))
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusTooManyRequests:
		return &apperr.Error{Code: apperr.TooMany, Reason: c.reason("BUSY"), Message: said, RetryAfter: retryAfter(r, c.now())}
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return &apperr.Error{Code: apperr.Unavailable, Reason: c.reason("AWAY"), Message: said, RetryAfter: retryAfter(r, c.now())}
	}
	return apperr.New(apperr.Invalid, c.reason("REFUSED"), said)
}

// wrongAnswer is an answer that cannot be shown.
func (c *caller) wrongAnswer(what string, cause error) error {
	return apperr.New(apperr.Invalid, c.reason("ANSWER"), "The "+c.what+"'s answer "+what).Wrap(cause)
}

// retryAfter reads both forms of the header (RFC 9110 section 10.2.3); zero if it is absent or invalid.
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
