package bus

// Whether the streams of the Config exist, for Ready. Each connect and each missing stream starts a check.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	checkTimeout = 5 * time.Second
	minCheckWait = 100 * time.Millisecond
	maxCheckWait = 5 * time.Second
)

var errNotChecked = errors.New("streams not checked yet")

// missingStreamError names a missing stream and the command that creates it.
type missingStreamError struct{ stream string }

// Error implements error.
func (e *missingStreamError) Error() string {
	return "stream " + e.stream + " is missing: run `parleyctl streams apply`"
}

// streamWatcher checks on request whether the streams exist. It never creates or changes one.
type streamWatcher struct {
	bus      *Bus
	requests chan struct{} // capacity 1
	ended    sync.WaitGroup

	mu  sync.Mutex // guards err
	err error      // error of the last check; nil: all streams exist
}

func newStreamWatcher(b *Bus) *streamWatcher {
	w := &streamWatcher{bus: b, requests: make(chan struct{}, 1), err: errNotChecked}
	if b.cfg.Observe {
		w.err = nil
	}
	return w
}

func (w *streamWatcher) start() {
	w.ended.Go(w.run)
	w.check() // the connection may have been established before run started
}

func (w *streamWatcher) wait() { w.ended.Wait() }

// check requests another check. It never blocks.
func (w *streamWatcher) check() {
	if w.bus.cfg.Observe {
		return
	}
	wake(w.requests)
}

// state returns the error of the last check.
func (w *streamWatcher) state() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *streamWatcher) run() {
	for {
		select {
		case <-w.bus.ctx.Done():
			return
		case <-w.requests:
			w.checkUntilFound()
		}
	}
}

// checkUntilFound returns when the streams exist, the connection is lost (reconnecting requests another
// check) or the bus closes.
func (w *streamWatcher) checkUntilFound() {
	wait := minCheckWait
	for w.bus.ctx.Err() == nil && w.bus.conn.IsConnected() {
		if w.record(w.checkAll()) {
			return
		}
		_ = sleep(w.bus.ctx, wait)
		wait = min(2*wait, maxCheckWait)
	}
}

// record stores the result of a check, logs it if it changed, and reports whether the streams exist.
func (w *streamWatcher) record(err error) bool {
	w.mu.Lock()
	before := w.err
	w.err = err
	w.mu.Unlock()
	known := before != nil && err != nil && before.Error() == err.Error()
	if err != nil && !known && w.bus.ctx.Err() == nil && w.bus.conn.IsConnected() {
		if missing, ok := errors.AsType[*missingStreamError](err); ok {
			w.bus.log.Error("a stream is missing: run `parleyctl streams apply`", "stream", missing.stream)
		} else {
			w.bus.log.Error("checking the streams failed, retrying", "error", err)
		}
	}
	if err == nil && before != nil {
		w.logPromise()
	}
	return err == nil
}

// logPromise logs where accepted events are.
func (w *streamWatcher) logPromise() {
	promise, kept := w.bus.syncs.promises()
	if kept {
		w.bus.log.Info("streams found", "acceptedEventsAre", promise)
		return
	}
	w.bus.log.Warn("streams found; a power cut may lose accepted events, see STREAM_SYNC", "acceptedEventsAre", promise)
}

func (w *streamWatcher) checkAll() error {
	for _, name := range w.bus.cfg.Streams {
		ctx, cancel := w.bus.state.request(w.bus.ctx, checkTimeout)
		err := w.checkOne(ctx, name)
		cancel()
		if err != nil {
			return err
		}
	}
	return w.measureClock()
}

// measureClock measures the clock before the bus is ready.
func (w *streamWatcher) measureClock() error {
	if !slices.Contains(w.bus.cfg.Streams, subject.Replies) {
		return nil
	}
	ctx, cancel := w.bus.state.request(w.bus.ctx, checkTimeout)
	defer cancel()
	if err := w.bus.measureClock(ctx, firstClockTries); err != nil {
		return fmt.Errorf("reading the clock of NATS: %w", err)
	}
	return nil
}

func (w *streamWatcher) checkOne(ctx context.Context, name string) error {
	info, _, err := w.bus.inspect(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return &missingStreamError{name}
	case err != nil:
		return fmt.Errorf("checking stream %s: %w", name, err)
	}
	w.bus.syncs.found(info.Config)
	return nil
}

// eventStreams returns the names of the event streams.
func eventStreams() []string {
	var names []string
	for _, s := range subject.Streams() {
		if !s.LastOnly { // revocations and offsets are not events
			names = append(names, s.Name)
		}
	}
	return names
}
