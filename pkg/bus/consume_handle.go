package bus

// The tries of deliveries: calling the handler, logging its error, and giving up. The workers of the queue
// (consume_queue.go) call handleAll.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// handleAll tries each task once and sets its result. A task that the group has given up on uses its tries
// to reach DEAD. A replay for another consumer is finished without a try.
func (g *group) handleAll(tasks []*task, results []tryResult) {
	live := make([]*task, 0, len(tasks))
	indexes := make([]int, 0, len(tasks)) // of the live tasks in tasks
	for i, t := range tasks {
		switch {
		case !AddressedTo(t.delivery.Header, g.cfg.Durable):
			g.finish(t, ackDone)
		case t.dead != nil:
			results[i] = g.deadLetter(t)
		case t.skipped.Load():
			results[i] = g.giveUp(t, errSkipped(t.partition.ledger.lastFailure(t)))
		default:
			live = append(live, t)
			indexes = append(indexes, i)
		}
	}
	for k, err := range g.try(live) {
		results[indexes[k]] = g.classify(live[k], err)
	}
}

// finish acknowledges or terminates the delivery of t and stops counting it as held.
func (g *group) finish(t *task, ack string) {
	t.partition.ledger.finish(t, ack)
	g.removeHeld(t)
}

// try calls the handler for each task and returns the errors by index.
func (g *group) try(tasks []*task) []error {
	for _, t := range tasks {
		if t.tries == 0 {
			t.started = time.Now()
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

// classify returns the result of a try that returned err, and finishes the task if it is done.
func (g *group) classify(t *task, err error) tryResult {
	g.countHandled(err)
	switch d, wait := decide(err, t.tries, time.Since(t.started), g.cfg.MaxPause); d {
	case retryLater:
		if t.skipped.Load() {
			return g.giveUp(t, errSkipped(err))
		}
		g.logRetry(t, err, wait)
		t.partition.ledger.fail(t, failure{t.delivery.Attempt, reason(err), time.Now().Add(wait)})
		return tryResult{again: true, after: wait}
	case giveUp:
		return g.giveUp(t, err)
	case acknowledge:
	}
	g.logRecovery()
	g.finish(t, ackDone)
	return tryResult{}
}

// handleBatch calls HandleBatch once for all tasks. After a panic it calls it for each delivery separately,
// so that only the one that causes the panic fails.
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
		copy(errs[i:i+1], found)
		if panicked != nil {
			errs[i] = panicked
		}
	}
}

// callBatch returns the errors of HandleBatch, or nil. panicked is the error of a recovered panic.
func (g *group) callBatch(batch []Delivery) (errs []error, panicked error) {
	defer func() {
		if p := recover(); p != nil {
			errs, panicked = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if len(batch) == 0 {
		return nil, nil
	}
	return g.cfg.HandleBatch(g.handlerCtx, batch), nil
}

// handle calls Handle. It returns a panic as an internal error.
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

func (g *group) countHandled(err error) {
	if err == nil {
		g.handledOK.Inc()
		return
	}
	g.bus.metrics.handled.WithLabelValues(g.cfg.Stream, g.cfg.Durable, string(apperr.CodeOf(err))).Inc()
}

// logRetry logs a failed try: internal errors at error level, the start of an outage once as a warning for
// all affected deliveries, and everything else at debug level.
func (g *group) logRetry(t *task, err error, wait time.Duration) {
	level := slog.LevelDebug
	outage := false // the first failure of one
	switch apperr.CodeOf(err) {
	case apperr.Unavailable, apperr.TooMany:
		if !g.failing.Swap(true) {
			level = slog.LevelWarn
			outage = true
		}
	case apperr.Internal:
		level = slog.LevelError
	case apperr.Invalid, apperr.Unauthenticated, apperr.NotFound, apperr.Conflict:
	}
	ctx := g.originOf(t)
	if !g.bus.log.Enabled(ctx, level) {
		return
	}
	attrs := append(g.deliveryAttrs(t), slog.Int("try", t.tries), slog.Duration("in", wait), errorAttr(err))
	if outage {
		const text = "handling deliveries failed, retrying until the dependency is available"
		g.bus.log.LogAttrs(ctx, level, text, attrs...)
		return
	}
	g.bus.log.LogAttrs(ctx, level, "delivery failed, retrying", attrs...)
}

// deliveryAttrs returns the log attributes of the delivery.
func (g *group) deliveryAttrs(t *task) []slog.Attr {
	return []slog.Attr{
		slog.String("stream", g.cfg.Stream),
		slog.String("consumer", g.cfg.Durable),
		slog.String("subject", t.delivery.Subject),
		slog.Uint64("sequence", t.delivery.Sequence),
		slog.String("eventId", t.delivery.ID),
	}
}

func errorAttr(err error) slog.Attr { return slog.String("error", apperr.LogText(err)) }

func (g *group) logRecovery() {
	if g.failing.Load() && g.failing.Swap(false) {
		g.bus.log.Info("handling deliveries recovered", "consumer", g.cfg.Durable)
	}
}

// giveUp makes a task a dead letter, in this and all further tries.
func (g *group) giveUp(t *task, err error) tryResult {
	t.dead = err
	t.tries = 0 // from now on they count the tries to publish the dead letter
	return g.deadLetter(t)
}

// notifyGaveUp calls GaveUp unless it has already succeeded for the delivery. A panic counts as success: a
// retry would panic again.
func (g *group) notifyGaveUp(ctx context.Context, t *task) (err error) {
	if g.cfg.GaveUp == nil || t.notified {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			g.bus.log.LogAttrs(ctx, slog.LevelError, "GaveUp handler panicked", append(g.deliveryAttrs(t),
				slog.String("error", fmt.Sprintf("panic: %v\n%s", p, debug.Stack())))...)
			t.notified = true
		}
	}()
	err = g.cfg.GaveUp(ctx, t.delivery)
	t.notified = err == nil
	return err
}

// keepDead publishes the dead letter of t, unless DEAD has no room for its reason.
func (g *group) keepDead(ctx context.Context, t *task) error {
	if !g.bus.keepsDead(t.dead) {
		g.bus.log.LogAttrs(ctx, slog.LevelError, "DEAD is filling up: the dead letter is not kept", g.deliveryAttrs(t)...)
		return nil
	}
	return g.bus.publishDead(ctx, g.bus.newDeadLetter(g.cfg, t))
}

// deadLetter calls GaveUp, publishes the dead letter of t, and finishes the delivery after DEAD has stored
// it. It retries without a limit: giving up here would lose the delivery.
func (g *group) deadLetter(t *task) tryResult {
	t.tries++
	ctx := context.WithoutCancel(g.originOf(t))
	if err := g.notifyGaveUp(ctx, t); err != nil {
		if t.tries == 1 {
			g.bus.log.LogAttrs(ctx, slog.LevelWarn, "GaveUp handler failed, retrying until it succeeds",
				append(g.deliveryAttrs(t), errorAttr(err))...)
		}
		return tryResult{again: true, after: backoff(neverGiveUp(), t.tries)}
	}
	if err := g.keepDead(ctx, t); err != nil {
		if t.tries == 1 {
			g.bus.log.LogAttrs(ctx, slog.LevelError, "writing a dead letter failed, retrying until it is stored",
				append(g.deliveryAttrs(t), errorAttr(err))...)
		}
		return tryResult{again: true, after: backoff(neverGiveUp(), t.tries)}
	}
	level := slog.LevelError
	if errors.Is(t.dead, errShed) { // shedLoad has told of all together
		level = slog.LevelDebug
	}
	g.bus.log.LogAttrs(ctx, level, "gave up on a delivery", append(g.deliveryAttrs(t),
		slog.Int("attempts", t.delivery.Attempt), errorAttr(t.dead))...)
	g.bus.metrics.deadLetters.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Inc()
	g.finish(t, ackTerm)
	return tryResult{}
}
