package bus

// The circuit breakers of streams that have stopped acknowledging. publish.go and pkg/file/natsfile call
// them.

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// probeInterval is the interval of probes: publishes that the guard lets through to a stream that does
	// not acknowledge. probeTimeout limits each.
	probeInterval = 5 * time.Second
	probeTimeout  = 2 * time.Second
	// failureTTL is how long a failure affects readiness if nothing is published.
	failureTTL = 30 * time.Second
)

// notWritableError reports a stream that receives messages but does not acknowledge them. nats-server sends
// no response if it cannot write, for example because the disk is full, and does not write again until it is
// restarted or another server leads the stream.
type notWritableError struct{ stream string }

func (e *notWritableError) Error() string {
	return "stream " + e.stream + " does not acknowledge: NATS cannot write it, its disk may be full"
}

// WriteGuard is a circuit breaker for publishes to a stream that does not acknowledge. It trips when a
// publish times out and the stream has acknowledged nothing else meanwhile. Publishes then fail at once,
// except for a probe at intervals, until one is acknowledged or the connection is re-established.
type WriteGuard struct {
	stream   string
	log      *slog.Logger
	writable prometheus.Gauge
	acked    atomic.Uint64 // number of acknowledgements
	closed   atomic.Bool

	mu    sync.Mutex // guards the fields below
	since time.Time  // time of the failure
	probe time.Time  // time of the last probe or failure
}

// NewWriteGuard returns a guard for a stream that is written without a Bus.
func NewWriteGuard(stream string) *WriteGuard {
	return newWriteGuard(
		stream,
		slog.New(slog.DiscardHandler),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "unregistered"}),
	)
}

func newWriteGuard(stream string, log *slog.Logger, writable prometheus.Gauge) *WriteGuard {
	g := &WriteGuard{stream: stream, log: log, writable: writable}
	g.writable.Set(1)
	return g
}

// Do calls publish, which must publish to the stream and wait for the acknowledgement. It fails without
// calling publish while the guard is tripped. A nil guard always calls it.
func (g *WriteGuard) Do(ctx context.Context, publish func(context.Context) error) error {
	began := time.Now()
	a, err := g.begin(began)
	if err != nil {
		return err
	}
	ctx, cancel := a.bound(ctx)
	defer cancel()
	err = publish(ctx)
	return a.end(err, time.Since(began))
}

// attempt is a publish that the guard has admitted.
type attempt struct {
	guard *WriteGuard
	acked uint64
	probe bool
}

// begin admits a publish or returns an error. A nil guard admits all.
func (g *WriteGuard) begin(now time.Time) (attempt, error) {
	if g == nil {
		return attempt{}, nil
	}
	a := attempt{guard: g, acked: g.acked.Load()}
	if !g.closed.Load() {
		return a, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.probe = now.Sub(g.probe) >= probeInterval; a.probe {
		g.probe = now
		return a, nil
	}
	return a, &notWritableError{g.stream}
}

// bound limits the duration of a probe.
func (a attempt) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.probe {
		return context.WithTimeout(ctx, probeTimeout)
	}
	return ctx, func() {}
}

// end records the result of the publish and returns its error.
func (a attempt) end(err error, waited time.Duration) error {
	g := a.guard
	if g == nil {
		return err
	}
	if err == nil {
		g.acknowledged()
		return nil
	}
	if !overdue(err, waited) || g.acked.Load() != a.acked {
		return err
	}
	g.close()
	return &notWritableError{g.stream}
}

// overdue reports whether err means that the stream did not acknowledge in time.
func overdue(err error, waited time.Duration) bool {
	return errors.Is(err, errAckTimeout) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, context.DeadlineExceeded) && waited >= probeTimeout
}

func (g *WriteGuard) acknowledged() {
	g.acked.Add(1)
	if g.closed.Load() {
		g.open("stream acknowledges")
	}
}

func (g *WriteGuard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probe = time.Now()
	if !g.closed.Swap(true) {
		g.since = g.probe
		g.writable.Set(0)
		g.log.Error(
			"stream does not acknowledge, rejecting publishes until it does: NATS cannot write it, its disk may be full",
			"stream",
			g.stream,
		)
	}
}

func (g *WriteGuard) open(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Swap(false) {
		g.writable.Set(1)
		g.log.Info(
			"stream writable, accepting publishes again", "stream", g.stream, "because", why, "after",
			time.Since(g.since).Round(time.Millisecond),
		)
	}
}

// state returns an error if the stream recently did not acknowledge.
func (g *WriteGuard) state() error {
	if !g.closed.Load() {
		return nil
	}
	g.mu.Lock()
	idle := time.Since(g.probe) > failureTTL
	g.mu.Unlock()
	if idle {
		g.open("no recent publish")
		return nil
	}
	return &notWritableError{g.stream}
}

// writeGuards holds the guards of all streams.
type writeGuards []guardedSubject

type guardedSubject struct {
	prefix string
	guard  *WriteGuard
}

func newWriteGuards(log *slog.Logger, writable *prometheus.GaugeVec) (all writeGuards) {
	for _, s := range subject.Streams() {
		g := newWriteGuard(s.Name, log, writable.WithLabelValues(s.Name))
		for _, filter := range s.Subjects {
			all = append(all, guardedSubject{strings.TrimSuffix(filter, ">"), g})
		}
	}
	return all
}

// of returns the guard of the stream for a subject; nil: no stream.
func (all writeGuards) of(subj string) *WriteGuard {
	for _, s := range all {
		if strings.HasPrefix(subj, s.prefix) {
			return s.guard
		}
	}
	return nil
}

// reconnected opens all guards: the new connection may lead to a server that can write.
func (all writeGuards) reconnected() {
	for _, s := range all {
		s.guard.open("NATS connected again")
	}
}

// late records an acknowledgement that arrived after the publisher's timeout.
func (all writeGuards) late(stream string) {
	for _, s := range all {
		if s.guard.stream == stream {
			s.guard.acknowledged()
			return
		}
	}
}

// state returns the error of a stream that does not acknowledge; nil: none.
func (all writeGuards) state() error {
	for _, s := range all {
		if err := s.guard.state(); err != nil {
			return err
		}
	}
	return nil
}
