package bus

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
	// probeEvery is how often a publish is let through to a stream that does not acknowledge, and probeTimeout how long it may take.
	probeEvery   = 5 * time.Second
	probeTimeout = 2 * time.Second
	// probeMemory is how long a failure counts without publishes.
	probeMemory = 30 * time.Second
)

// notWritableError says that a stream takes messages and acknowledges none. nats-server gives a publisher no answer when it cannot
// write, as with a full disk, and does not write again before it has been restarted, or another server leads the stream.
type notWritableError struct{ stream string }

func (e *notWritableError) Error() string {
	return "stream " + e.stream + " does not acknowledge: NATS cannot write it, its disk may be full"
}

// WriteGuard keeps publishes from a stream that does not acknowledge. It closes when a publish times out during whose whole wait the stream
// has acknowledged nothing else. Then publishes fail at once, but for one now and then that probes, until one is acknowledged or
// the connection is new.
type WriteGuard struct {
	stream   string
	log      *slog.Logger
	writable prometheus.Gauge
	acked    atomic.Uint64 // counts the acknowledgements
	closed   atomic.Bool

	mu    sync.Mutex
	since time.Time // of the failure
	probe time.Time // when a publish was let through last, or failed
}

// NewWriteGuard returns a guard of a stream that is written past the bus.
func NewWriteGuard(stream string) *WriteGuard {
	return newWriteGuard(stream, slog.New(slog.DiscardHandler), prometheus.NewGauge(prometheus.GaugeOpts{Name: "unregistered"}))
}

func newWriteGuard(stream string, log *slog.Logger, writable prometheus.Gauge) *WriteGuard {
	g := &WriteGuard{stream: stream, log: log, writable: writable}
	g.writable.Set(1)
	return g
}

// Do calls publish, which publishes on the stream and waits for the acknowledgement, or says at once why not. A nil guard always calls it.
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

// attempt is a publish that the guard has let through.
type attempt struct {
	guard *WriteGuard
	acked uint64
	probe bool
}

// begin lets a publish through, or says why not. A nil guard lets all through.
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
	if a.probe = now.Sub(g.probe) >= probeEvery; a.probe {
		g.probe = now
		return a, nil
	}
	return a, &notWritableError{g.stream}
}

// bound limits how long a probe may take.
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

// overdue reports whether an acknowledgement is later than it should be.
func overdue(err error, waited time.Duration) bool {
	return errors.Is(err, errAckTimeout) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) && waited >= probeTimeout
}

func (g *WriteGuard) acknowledged() {
	g.acked.Add(1)
	if g.closed.Load() {
		g.open("it acknowledges")
	}
}

func (g *WriteGuard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probe = time.Now()
	if !g.closed.Swap(true) {
		g.since = g.probe
		g.writable.Set(0)
		g.log.Error("stream does not acknowledge, publishes fail at once until it does: NATS cannot write it, its disk may be full", "stream", g.stream)
	}
}

func (g *WriteGuard) open(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Swap(false) {
		g.writable.Set(1)
		g.log.Info("publishes to the stream are let through again", "stream", g.stream, "because", why, "after", time.Since(g.since).Round(time.Millisecond))
	}
}

// state returns nil unless the stream did not acknowledge lately.
func (g *WriteGuard) state() error {
	if !g.closed.Load() {
		return nil
	}
	g.mu.Lock()
	idle := time.Since(g.probe) > probeMemory
	g.mu.Unlock()
	if idle {
		g.open("nobody has tried it for a while")
		return nil
	}
	return &notWritableError{g.stream}
}

// writeGuards are those of all streams.
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

// of returns the guard of the stream that keeps a subject; nil: none does.
func (all writeGuards) of(subj string) *WriteGuard {
	for _, s := range all {
		if strings.HasPrefix(subj, s.prefix) {
			return s.guard
		}
	}
	return nil
}

// renewed opens all: what could not be written before a connection may be written after it.
func (all writeGuards) renewed() {
	for _, s := range all {
		s.guard.open("NATS connected again")
	}
}

// late records an acknowledgement that arrived after its publisher gave up.
func (all writeGuards) late(stream string) {
	for _, s := range all {
		if s.guard.stream == stream {
			s.guard.acknowledged()
			return
		}
	}
}

// state returns why one of the streams cannot be written; nil: all can.
func (all writeGuards) state() error {
	for _, s := range all {
		if err := s.guard.state(); err != nil {
			return err
		}
	}
	return nil
}
