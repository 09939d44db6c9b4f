package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// probeEvery is how often a publish is let through to a stream that does not acknowledge, and probeTimeout how long it may take.
	probeEvery   = 5 * time.Second
	probeTimeout = 2 * time.Second
	// probeMemory is how long a failure counts when nobody publishes.
	probeMemory = 30 * time.Second
)

// notWritableError says that a stream takes messages and acknowledges none. nats-server gives a publisher no answer when it cannot
// write, as with a full disk, and does not write again before it has been restarted, or another server leads the stream.
type notWritableError struct{ stream string }

func (e *notWritableError) Error() string {
	return "stream " + e.stream + " does not acknowledge: NATS cannot write it, its disk may be full"
}

// writeGuard keeps publishes from a stream that does not acknowledge. It closes when a publish times out during whose whole wait the stream
// has acknowledged nothing else. Then publishes fail at once, but for one now and then that probes, until one is acknowledged or
// the connection is new.
type writeGuard struct {
	stream   string
	log      *slog.Logger
	writable prometheus.Gauge
	acked    atomic.Uint64 // counts the acknowledgements
	closed   atomic.Bool

	mu    sync.Mutex
	since time.Time // of the failure
	probe time.Time // when a publish was let through last, or failed
}

// attempt is a publish that the guard has let through.
type attempt struct {
	guard *writeGuard
	acked uint64
	probe bool
}

// begin lets a publish through, or says why not. A nil guard lets all through.
func (g *writeGuard) begin(now time.Time) (attempt, error) {
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

// end tells how the publish ended, and returns its error.
func (a attempt) end(err error, waited time.Duration) error {
	g := a.guard
	if g == nil {
		return err
	}
	if err == nil {
		g.acknowledged()
		return nil
	}
	if !errors.Is(err, errAckTimeout) && waited < probeTimeout || apiError(err) != 0 || errors.Is(err, errNoStream) || g.acked.Load() != a.acked {
		return err
	}
	g.close()
	return fmt.Errorf("%w: %w", &notWritableError{g.stream}, err)
}

func (g *writeGuard) acknowledged() {
	g.acked.Add(1)
	if g.closed.Load() {
		g.open("stream acknowledges again")
	}
}

func (g *writeGuard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probe = time.Now()
	if !g.closed.Swap(true) {
		g.since = g.probe
		g.writable.Set(0)
		g.log.Error("stream does not acknowledge, publishes fail at once until it does: NATS cannot write it, its disk may be full", "stream", g.stream)
	}
}

func (g *writeGuard) open(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Swap(false) {
		g.writable.Set(1)
		g.log.Info(why, "stream", g.stream, "after", time.Since(g.since).Round(time.Millisecond))
	}
}

// state returns nil unless the stream did not acknowledge lately.
func (g *writeGuard) state() error {
	if !g.closed.Load() {
		return nil
	}
	g.mu.Lock()
	idle := time.Since(g.probe) > probeMemory
	g.mu.Unlock()
	if idle {
		g.open("nobody has tried the stream for a while")
		return nil
	}
	return &notWritableError{g.stream}
}

// writeGuards are those of all streams.
type writeGuards []guardedSubject

type guardedSubject struct {
	prefix string
	guard  *writeGuard
}

func newWriteGuards(log *slog.Logger, writable *prometheus.GaugeVec) (all writeGuards) {
	for _, s := range subject.Streams() {
		g := &writeGuard{stream: s.Name, log: log, writable: writable.WithLabelValues(s.Name)}
		g.writable.Set(1)
		for _, filter := range s.Subjects {
			all = append(all, guardedSubject{strings.TrimSuffix(filter, ">"), g})
		}
	}
	return all
}

// of returns the guard of the stream that keeps a subject; nil: none does.
func (all writeGuards) of(subj string) *writeGuard {
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
		s.guard.open("NATS is there again")
	}
}

// late takes an acknowledgement for which nobody waits any more.
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
