package bus

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
	// duplicateWindow is how long a stream remembers event ids: the second net under an Idempotency-Key.
	duplicateWindow = 2 * time.Minute
	declareTimeout  = 5 * time.Second
	minDeclareWait  = 100 * time.Millisecond
	maxDeclareWait  = 5 * time.Second
)

var errNotDeclared = errors.New("the streams are not declared yet")

// streamKeeper declares the streams whenever somebody has a reason to doubt that they are there.
type streamKeeper struct {
	bus   *Bus
	doubt chan struct{} // holds at most one
	ended sync.WaitGroup

	mu  sync.Mutex
	err error // why the streams are not there; nil: they are
}

func newStreamKeeper(b *Bus) *streamKeeper {
	k := &streamKeeper{bus: b, doubt: make(chan struct{}, 1), err: errNotDeclared}
	if b.cfg.Observe { // what is there is as it should be
		k.err = nil
	}
	return k
}

func (k *streamKeeper) start() {
	k.ended.Go(k.run)
	k.check() // the connection may have come before anybody listened
}

func (k *streamKeeper) wait() { k.ended.Wait() }

// check makes the keeper look again. It never blocks.
func (k *streamKeeper) check() {
	if k.bus.cfg.Observe {
		return
	}
	select {
	case k.doubt <- struct{}{}:
	default:
	}
}

func (k *streamKeeper) state() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func (k *streamKeeper) run() {
	for {
		select {
		case <-k.bus.ctx.Done():
			return
		case <-k.doubt:
			k.declareUntilDone()
		}
	}
}

// declareUntilDone gives up only when the connection is away (its return is a new reason to look) or the bus closes.
func (k *streamKeeper) declareUntilDone() {
	wait := minDeclareWait
	for k.bus.ctx.Err() == nil && k.bus.conn.IsConnected() {
		err := k.declare()
		if k.note(err) {
			return
		}
		select {
		case <-k.bus.ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxDeclareWait)
	}
}

// note keeps the outcome, says what is new in it, and reports whether the streams are there.
func (k *streamKeeper) note(err error) bool {
	k.mu.Lock()
	before := k.err
	k.err = err
	k.mu.Unlock()
	known := before != nil && err != nil && before.Error() == err.Error()
	if err != nil && !known && k.bus.ctx.Err() == nil && k.bus.conn.IsConnected() {
		k.bus.log.Error("declaring the streams failed, trying again", "error", err)
	}
	if err == nil && before != nil {
		k.bus.log.Info("the streams are there")
	}
	return err == nil
}

func (k *streamKeeper) declare() error {
	for _, s := range subject.Streams() {
		ctx, cancel := k.bus.link.request(k.bus.ctx, declareTimeout)
		err := k.declareStream(ctx, k.config(s))
		cancel()
		if err != nil {
			return fmt.Errorf("declaring stream %s: %w", s.Name, err)
		}
	}
	return nil
}

// declareStream leaves a stream alone that is as it should be. Every service declares at every connect, and nats-server
// (2.15) does not guard a stream's configuration against a consumer that is created during an update.
func (k *streamKeeper) declareStream(ctx context.Context, want jetstream.StreamConfig) error {
	if s, err := k.bus.js.Stream(ctx, want.Name); err == nil && declared(s.CachedInfo().Config, want) {
		return nil
	}
	_, err := k.bus.js.CreateOrUpdateStream(ctx, want)
	return err
}

// declared compares what [streamKeeper.config] sets.
func declared(have, want jetstream.StreamConfig) bool {
	return slices.Equal(have.Subjects, want.Subjects) && have.Storage == want.Storage && have.Retention == want.Retention &&
		have.Discard == want.Discard && have.MaxAge == want.MaxAge && have.MaxBytes == want.MaxBytes &&
		have.Replicas == want.Replicas && have.Duplicates == want.Duplicates && have.AllowDirect == want.AllowDirect &&
		max(have.MaxMsgsPerSubject, 0) == max(want.MaxMsgsPerSubject, 0)
}

func (k *streamKeeper) config(s subject.Stream) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:        s.Name,
		Subjects:    s.Subjects,
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxAge:      k.bus.cfg.MaxAge,
		MaxBytes:    k.bus.cfg.MaxBytes,
		Replicas:    k.bus.cfg.Replicas,
		Duplicates:  min(duplicateWindow, k.bus.cfg.MaxAge),
		AllowDirect: true,
	}
	if s.LastOnly {
		c.MaxMsgsPerSubject, c.MaxAge = 1, subject.RevocationAge
	}
	return c
}
