package bus

import (
	"context"
	"errors"
	"fmt"
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

var errNotChecked = errors.New("the streams have not been checked yet")

// missingStreamError names a missing stream and the command that creates it.
type missingStreamError struct{ stream string }

func (e *missingStreamError) Error() string {
	return "stream " + e.stream + " is missing: run `parleyctl streams apply`"
}

// streamWatcher checks that the streams exist, whenever there is a reason to doubt it. It changes nothing.
type streamWatcher struct {
	bus   *Bus
	doubt chan struct{} // holds at most one
	ended sync.WaitGroup

	mu  sync.Mutex
	err error // why the streams cannot be used; nil: they can
}

func newStreamWatcher(b *Bus) *streamWatcher {
	w := &streamWatcher{bus: b, doubt: make(chan struct{}, 1), err: errNotChecked}
	if b.cfg.Observe {
		w.err = nil
	}
	return w
}

func (w *streamWatcher) start() {
	w.ended.Go(w.run)
	w.check() // the connection may have opened before run began
}

func (w *streamWatcher) wait() { w.ended.Wait() }

// check requests another check. It never blocks.
func (w *streamWatcher) check() {
	if w.bus.cfg.Observe {
		return
	}
	select {
	case w.doubt <- struct{}{}:
	default:
	}
}

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
		case <-w.doubt:
			w.checkUntilFound()
		}
	}
}

// checkUntilFound returns when the streams exist, the connection is lost (reconnecting requests another check) or the bus closes.
func (w *streamWatcher) checkUntilFound() {
	wait := minCheckWait
	for w.bus.ctx.Err() == nil && w.bus.conn.IsConnected() {
		if w.note(w.checkAll()) {
			return
		}
		select {
		case <-w.bus.ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxCheckWait)
	}
}

// note keeps the outcome, logs what is new in it, and reports whether the streams exist.
func (w *streamWatcher) note(err error) bool {
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
		w.bus.log.Info("streams found")
	}
	return err == nil
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
	return nil
}

func (w *streamWatcher) checkOne(ctx context.Context, name string) error {
	_, err := w.bus.js.Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return &missingStreamError{name}
	case err != nil:
		return fmt.Errorf("checking stream %s: %w", name, err)
	}
	return nil
}

// eventStreams are the streams of events.
func eventStreams() []string {
	var names []string
	for _, s := range subject.Streams() {
		if !s.LastOnly { // revocations are no events
			names = append(names, s.Name)
		}
	}
	return names
}
