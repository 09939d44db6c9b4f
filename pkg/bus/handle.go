package bus

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// run tries each task once and says whether and when it wants another turn. A task that is lost for its handler uses its
// turns to get to DEAD.
func (r *consumption) run(tasks []*task, verdicts []verdict) {
	live, places := make([]*task, 0, len(tasks)), make([]int, 0, len(tasks))
	for i, t := range tasks {
		switch {
		case t.dead != nil:
			verdicts[i] = r.bury(t)
		case !meantFor(t.delivery.Header, r.cfg.Durable):
			r.ledger.finish(t, ackDone)
		default:
			live, places = append(live, t), append(places, i)
		}
	}
	for k, err := range r.try(live) {
		verdicts[places[k]] = r.judge(live[k], err)
	}
}

// try calls the handler.
func (r *consumption) try(tasks []*task) []error {
	for _, t := range tasks {
		if t.tries == 0 {
			t.started = time.Now()
		}
		t.delivery.Attempt = t.delivered + t.tries
		t.tries++
		if t.delivery.Attempt > 1 {
			r.bus.metrics.redelivered.WithLabelValues(r.cfg.Stream, r.cfg.Durable).Inc()
		}
	}
	errs := make([]error, len(tasks))
	if r.cfg.HandleBatch != nil {
		r.handleBatch(tasks, errs)
		return errs
	}
	for i, t := range tasks {
		errs[i] = r.handle(t)
	}
	return errs
}

// judge decides what becomes of a task whose try has ended with err.
func (r *consumption) judge(t *task, err error) verdict {
	r.count(err)
	switch fate, wait := decide(err, t.tries, time.Since(t.started)); fate {
	case fateRetry:
		wait = min(wait, r.cfg.MaxPause)
		r.note(t, err, wait)
		r.ledger.fail(t, failure{t.delivery.Attempt, reason(err), time.Now().Add(wait)})
		return verdict{again: true, after: wait}
	case fateDead:
		t.dead, t.tries = err, 0
		return r.bury(t)
	case fateAck:
	}
	r.recovered()
	r.ledger.finish(t, ackDone)
	return verdict{}
}

// handleBatch calls the handler once for all. Where that panics it is called for each by itself: only the delivery that is
// to blame shall bear the consequences.
func (r *consumption) handleBatch(tasks []*task, errs []error) {
	batch := make([]Delivery, len(tasks))
	for i, t := range tasks {
		batch[i] = t.delivery
	}
	spans := r.beginAll(tasks, batch)
	defer func() { finishAll(spans, errs) }()
	found, panicked := r.callBatch(batch)
	if panicked == nil {
		copy(errs, found)
		return
	}
	for i := range batch {
		found, panicked := r.callBatch(batch[i : i+1])
		if copy(errs[i:i+1], found); panicked != nil {
			errs[i] = panicked
		}
	}
}

// callBatch returns the errors of the deliveries, or none; panicked is an error of ours.
func (r *consumption) callBatch(batch []Delivery) (errs []error, panicked error) {
	defer func() {
		if p := recover(); p != nil {
			errs, panicked = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if len(batch) == 0 {
		return nil, nil
	}
	return r.cfg.HandleBatch(r.handlers, batch), nil
}

// handle calls the handler; a panic is an error of ours.
func (r *consumption) handle(t *task) (err error) {
	ctx, span := r.beginProcess(r.originOf(t), t)
	defer func() { span.Finish(err) }()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.cfg.Handle(ctx, t.delivery)
}

func (r *consumption) count(err error) {
	if err == nil {
		r.handledOK.Inc()
		return
	}
	r.bus.metrics.handled.WithLabelValues(r.cfg.Stream, r.cfg.Durable, string(apperr.CodeOf(err))).Inc()
}

// note logs a failed try: a fault of ours each time, an outage once for all deliveries that it hits. The other tries, and what
// may only be early, are for who debugs.
func (r *consumption) note(t *task, err error, wait time.Duration) {
	level, outage := slog.LevelDebug, false
	switch apperr.CodeOf(err) {
	case apperr.Unavailable, apperr.TooMany:
		if !r.failing.Swap(true) {
			level, outage = slog.LevelWarn, true
		}
	case apperr.Internal:
		level = slog.LevelError
	case apperr.Invalid, apperr.Unauthenticated, apperr.NotFound, apperr.Conflict:
	}
	ctx := r.originOf(t)
	if !r.bus.log.Enabled(ctx, level) {
		return
	}
	attrs := append(r.describe(t), slog.Int("try", t.tries), slog.Duration("in", wait), errorAttr(err))
	if outage {
		r.bus.log.LogAttrs(ctx, level, "deliveries cannot be handled, retrying until they can", attrs...)
		return
	}
	r.bus.log.LogAttrs(ctx, level, "handling a delivery failed, trying again", attrs...)
}

// describe says in the log which delivery it is about.
func (r *consumption) describe(t *task) []slog.Attr {
	return []slog.Attr{
		slog.String("stream", r.cfg.Stream), slog.String("consumer", r.cfg.Durable), slog.String("subject", t.delivery.Subject),
		slog.Uint64("sequence", t.delivery.Sequence), slog.String("eventId", t.delivery.ID),
	}
}

func errorAttr(err error) slog.Attr { return slog.String("error", apperr.LogText(err)) }

func (r *consumption) recovered() {
	if r.failing.Load() && r.failing.Swap(false) {
		r.bus.log.Info("deliveries are handled again", "consumer", r.cfg.Durable)
	}
}

// bury publishes the dead letter of t, and only when DEAD has it ends the delivery. It never gives up: the alternative is
// to lose it.
func (r *consumption) bury(t *task) verdict {
	t.tries++
	ctx := context.WithoutCancel(r.originOf(t))
	if err := r.bus.publishDead(ctx, newDeadLetter(r.cfg, t)); err != nil {
		if t.tries == 1 {
			r.bus.log.LogAttrs(ctx, slog.LevelError, "writing a dead letter failed, trying until it is there", append(r.describe(t), errorAttr(err))...)
		}
		return verdict{again: true, after: backoff(neverGiveUp(), t.tries)}
	}
	r.bus.log.LogAttrs(ctx, slog.LevelError, "gave up on a delivery", append(r.describe(t),
		slog.Int("attempts", t.delivery.Attempt), errorAttr(t.dead))...)
	r.bus.metrics.deadLetters.WithLabelValues(r.cfg.Stream, r.cfg.Durable).Inc()
	r.ledger.finish(t, ackTerm)
	return verdict{}
}
