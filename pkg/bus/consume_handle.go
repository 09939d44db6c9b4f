package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// handleAll tries each task once and says whether and when it wants another turn. A task that is lost for its handler uses its
// turns to get to DEAD.
func (g *group) handleAll(tasks []*task, outcomes []outcome) {
	live, places := make([]*task, 0, len(tasks)), make([]int, 0, len(tasks))
	for i, t := range tasks {
		switch {
		case t.dead != nil:
			outcomes[i] = g.deadLetter(t)
		case t.skipped.Load():
			outcomes[i] = g.giveUp(t, errSkipped(t.partition.ledger.lastFailure(t)))
		case !addressedTo(t.delivery.Header, g.cfg.Durable):
			g.finish(t, ackDone)
		default:
			live, places = append(live, t), append(places, i)
		}
	}
	for k, err := range g.try(live) {
		outcomes[places[k]] = g.classify(live[k], err)
	}
}

// finish ends a task: it acknowledges the delivery and makes room for another one.
func (g *group) finish(t *task, ack string) {
	t.partition.ledger.finish(t, ack)
	g.dropped(t)
}

// try calls the handler.
func (g *group) try(tasks []*task) []error {
	for _, t := range tasks {
		if t.tries == 0 {
			t.started = time.Now()
		}
		if t.resumed { // the same try goes on
			t.resumed = false
			continue
		}
		t.delivery.Attempt = t.delivered + t.tries
		t.tries++
		if t.delivery.Attempt > 1 {
			g.bus.metrics.redelivered.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Inc()
		}
	}
	errs := make([]error, len(tasks))
	if g.cfg.HandleBatch != nil {
		g.handleBatch(tasks, errs)
		return errs
	}
	for i, t := range tasks {
		errs[i] = g.handle(t)
	}
	return errs
}

// classify decides what becomes of a task whose try has ended with err.
func (g *group) classify(t *task, err error) outcome {
	ready := readyOf(err)
	if ready == nil {
		g.count(err)
	}
	switch d, wait := decide(err, t.tries, time.Since(t.started), g.cfg.MaxPause); d {
	case retryLater:
		if t.skipped.Load() {
			return g.giveUp(t, errSkipped(err))
		}
		if t.resumed = ready != nil; !t.resumed {
			g.note(t, err, wait)
		}
		t.partition.ledger.fail(t, failure{t.delivery.Attempt, reason(err), time.Now().Add(wait)})
		return outcome{again: true, after: wait, ready: ready}
	case giveUp:
		return g.giveUp(t, err)
	case acknowledge:
	}
	g.recovered()
	g.finish(t, ackDone)
	return outcome{}
}

// readyOf returns what a try waits for that has not ended, only given up its place; nil: it has ended.
func readyOf(err error) <-chan struct{} {
	if e, ok := errors.AsType[*apperr.Error](err); ok {
		return e.Ready
	}
	return nil
}

// handleBatch calls the handler once for all. After a panic it is called for each delivery alone, so that only the one that causes it fails.
func (g *group) handleBatch(tasks []*task, errs []error) {
	batch := make([]Delivery, len(tasks))
	for i, t := range tasks {
		batch[i] = t.delivery
	}
	spans := g.beginAll(tasks, batch)
	defer func() { finishAll(spans, errs) }()
	found, panicked := g.callBatch(batch)
	if panicked == nil {
		copy(errs, found)
		return
	}
	for i := range batch {
		found, panicked := g.callBatch(batch[i : i+1])
		if copy(errs[i:i+1], found); panicked != nil {
			errs[i] = panicked
		}
	}
}

// callBatch returns the errors of the deliveries, or none; panicked is an error of ours.
func (g *group) callBatch(batch []Delivery) (errs []error, panicked error) {
	defer func() {
		if p := recover(); p != nil {
			errs, panicked = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if len(batch) == 0 {
		return nil, nil
	}
	return g.cfg.HandleBatch(g.handlers, batch), nil
}

// handle calls the handler; a panic is an error of ours.
func (g *group) handle(t *task) (err error) {
	ctx, span := g.beginProcess(g.originOf(t), t)
	defer func() { span.Finish(err) }()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return g.cfg.Handle(ctx, t.delivery)
}

func (g *group) count(err error) {
	if err == nil {
		g.handledOK.Inc()
		return
	}
	g.bus.metrics.handled.WithLabelValues(g.cfg.Stream, g.cfg.Durable, string(apperr.CodeOf(err))).Inc()
}

// note logs a failed try: an internal error each time, an outage once for all deliveries that it affects. Other failures, and those that are
// only early, are logged at debug level.
func (g *group) note(t *task, err error, wait time.Duration) {
	level, outage := slog.LevelDebug, false
	switch apperr.CodeOf(err) {
	case apperr.Unavailable, apperr.TooMany:
		if !g.failing.Swap(true) {
			level, outage = slog.LevelWarn, true
		}
	case apperr.Internal:
		level = slog.LevelError
	case apperr.Invalid, apperr.Unauthenticated, apperr.NotFound, apperr.Conflict:
	}
	ctx := g.originOf(t)
	if !g.bus.log.Enabled(ctx, level) {
		return
	}
	attrs := append(g.describe(t), slog.Int("try", t.tries), slog.Duration("in", wait), errorAttr(err))
	if outage {
		g.bus.log.LogAttrs(ctx, level, "deliveries cannot be handled, retrying until they can", attrs...)
		return
	}
	g.bus.log.LogAttrs(ctx, level, "handling a delivery failed, retrying", attrs...)
}

// describe says in the log which delivery it is about.
func (g *group) describe(t *task) []slog.Attr {
	return []slog.Attr{
		slog.String("stream", g.cfg.Stream), slog.String("consumer", g.cfg.Durable), slog.String("subject", t.delivery.Subject),
		slog.Uint64("sequence", t.delivery.Sequence), slog.String("eventId", t.delivery.ID),
	}
}

func errorAttr(err error) slog.Attr { return slog.String("error", apperr.LogText(err)) }

func (g *group) recovered() {
	if g.failing.Load() && g.failing.Swap(false) {
		g.bus.log.Info("deliveries are handled again", "consumer", g.cfg.Durable)
	}
}

func (g *group) giveUp(t *task, err error) outcome {
	t.dead, t.tries = err, 0
	return g.deadLetter(t)
}

// notifyGaveUp calls GaveUp. A panic there counts as done: it would happen again.
func (g *group) notifyGaveUp(ctx context.Context, t *task) (err error) {
	if g.cfg.GaveUp == nil || t.notified {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			g.bus.log.LogAttrs(ctx, slog.LevelError, "reporting a delivery that is given up panicked", append(g.describe(t),
				slog.String("error", fmt.Sprintf("panic: %v\n%s", p, debug.Stack())))...)
			t.notified = true
		}
	}()
	err = g.cfg.GaveUp(ctx, t.delivery)
	t.notified = err == nil
	return err
}

// deadLetter calls GaveUp, publishes the dead letter of t, and ends the delivery only when DEAD has stored it. It never gives up, since that
// would lose the delivery.
func (g *group) deadLetter(t *task) outcome {
	t.tries++
	ctx := context.WithoutCancel(g.originOf(t))
	if err := g.notifyGaveUp(ctx, t); err != nil {
		if t.tries == 1 {
			g.bus.log.LogAttrs(ctx, slog.LevelWarn, "reporting a delivery that is given up failed, retrying until it succeeds",
				append(g.describe(t), errorAttr(err))...)
		}
		return outcome{again: true, after: backoff(neverGiveUp(), t.tries)}
	}
	if err := g.bus.publishDead(ctx, newDeadLetter(g.cfg, t)); err != nil {
		if t.tries == 1 {
			g.bus.log.LogAttrs(ctx, slog.LevelError, "writing a dead letter failed, retrying until it is stored", append(g.describe(t), errorAttr(err))...)
		}
		return outcome{again: true, after: backoff(neverGiveUp(), t.tries)}
	}
	g.bus.log.LogAttrs(ctx, slog.LevelError, "gave up on a delivery", append(g.describe(t),
		slog.Int("attempts", t.delivery.Attempt), errorAttr(t.dead))...)
	g.bus.metrics.deadLetters.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Inc()
	g.finish(t, ackTerm)
	return outcome{}
}
