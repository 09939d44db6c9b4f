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

// Error implements error.
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
	tripped  atomic.Bool   // publishes fail at once, except for probes

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

// name returns the stream; empty for a nil guard.
func (w *WriteGuard) name() string {
	if w == nil {
		return ""
	}
	return w.stream
}

// Do calls publish, which must publish to the stream and wait for the acknowledgement. It fails without
// calling publish while the guard is tripped. A nil guard always calls it.
func (w *WriteGuard) Do(ctx context.Context, publish func(context.Context) error) error {
	began := time.Now()
	a, err := w.begin(began)
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
	guard *WriteGuard // nil: none, all publishes are admitted
	acked uint64      // number of acknowledgements before the publish
	probe bool        // the guard is tripped: the publish tests whether the stream acknowledges again
}

// begin admits a publish or returns an error. A nil guard admits all.
func (w *WriteGuard) begin(now time.Time) (attempt, error) {
	if w == nil {
		return attempt{}, nil
	}
	a := attempt{guard: w, acked: w.acked.Load()}
	if !w.tripped.Load() {
		return a, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a.probe = now.Sub(w.probe) >= probeInterval
	if !a.probe {
		return a, &notWritableError{w.stream}
	}
	w.probe = now
	return a, nil
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
	g.trip()
	return &notWritableError{g.stream}
}

// overdue reports whether err means that the stream did not acknowledge in time.
func overdue(err error, waited time.Duration) bool {
	return errors.Is(err, errAckTimeout) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, context.DeadlineExceeded) && waited >= probeTimeout
}

// acknowledged records that the stream has stored a publish, which resets the guard.
func (w *WriteGuard) acknowledged() {
	w.acked.Add(1)
	if w.tripped.Load() {
		w.reset("stream acknowledges")
	}
}

// trip makes publishes fail until reset is called.
func (w *WriteGuard) trip() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.probe = time.Now()
	if !w.tripped.Swap(true) {
		w.since = w.probe
		w.writable.Set(0)
		const text = "stream does not acknowledge, rejecting publishes until it does: " +
			"NATS cannot write it, its disk may be full"
		w.log.Error(text, "stream", w.stream)
	}
}

// reset admits all publishes again; why is for the log.
func (w *WriteGuard) reset(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tripped.Swap(false) {
		w.writable.Set(1)
		w.log.Info(
			"stream writable, accepting publishes again",
			"stream", w.stream, "because", why, "after", time.Since(w.since).Round(time.Millisecond),
		)
	}
}

// state returns an error if the stream recently did not acknowledge.
func (w *WriteGuard) state() error {
	if !w.tripped.Load() {
		return nil
	}
	w.mu.Lock()
	idle := time.Since(w.probe) > failureTTL
	w.mu.Unlock()
	if idle {
		w.reset("no recent publish")
		return nil
	}
	return &notWritableError{w.stream}
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

// reconnected resets all guards: the new connection may lead to a server that can write.
func (all writeGuards) reconnected() {
	for _, s := range all {
		s.guard.reset("NATS connected again")
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
