package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// progressTimeout is how long a question waits: the replicas that do not hold the delivery stay silent.
const progressTimeout = time.Second

// ProgressState is where a delivery stands with a consumer.
type ProgressState string

const (
	ProgressWaiting  ProgressState = "waiting"      // it has arrived; its turn has not come, or its first try runs
	ProgressRetrying ProgressState = "retrying"     // tries have failed, and another one follows
	ProgressDone     ProgressState = "acknowledged" // handled
	ProgressDead     ProgressState = "dead"         // given up: a letter is in DEAD
)

// Progress is what a consumer's process knows of a delivery. JetStream itself counts only deliveries, and a retry in place is
// none.
type Progress struct {
	State     ProgressState `json:"state"`
	Attempts  int           `json:"attempts"`
	LastError string        `json:"lastError,omitempty"` // of the last try that failed: the error's code, a colon, what happened
	NextTry   time.Time     `json:"nextTry,omitzero"`
}

// Progress asks the processes of a consumer for the state of the delivery with that sequence. NotFound means that none of them
// has it: no process runs, it has not been delivered yet, or it was done long ago.
func (b *Bus) Progress(ctx context.Context, stream, consumer string, sequence uint64) (Progress, error) {
	return b.ask(ctx, subject.Progress(stream, consumer), consumer, sequence)
}

func (b *Bus) ask(ctx context.Context, subj, consumer string, sequence uint64) (Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, progressTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, subj, strconv.AppendUint(nil, sequence, 10))
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return Progress{}, apperr.New(apperr.NotFound, "PROGRESS_UNKNOWN", "No process of the consumer knows of it")
	case err != nil:
		return Progress{}, apperr.Unreachable("NATS", fmt.Errorf("asking consumer %s: %w", consumer, err))
	}
	var p Progress
	if err := json.Unmarshal(m.Data, &p); err != nil {
		return Progress{}, fmt.Errorf("reading the answer of consumer %s: %w", consumer, err)
	}
	return p, nil
}

// Skip makes a consumer give up on the delivery with that sequence, which it keeps trying: the delivery becomes a dead letter, and the
// key's later ones go on. A try that runs is not cut short; where it succeeds there is nothing to give up. It returns where the delivery
// stood, and NotFound as [Bus.Progress] does.
func (b *Bus) Skip(ctx context.Context, stream, consumer string, sequence uint64) (Progress, error) {
	return b.ask(ctx, subject.Skip(stream, consumer), consumer, sequence)
}

// answerQuestions answers [Bus.Progress] and [Bus.Skip] until stop is called.
func (g *group) answerQuestions() (stop func()) {
	stopProgress := g.answer(subject.Progress(g.cfg.Stream, g.cfg.Durable), g.progress)
	stopSkip := g.answer(subject.Skip(g.cfg.Stream, g.cfg.Durable), g.skip)
	return func() {
		stopProgress()
		stopSkip()
	}
}

// answer answers questions about deliveries that are known here.
func (g *group) answer(subj string, about func(sequence uint64) (Progress, bool)) (stop func()) {
	sub, err := g.bus.conn.Subscribe(subj, func(m *nats.Msg) {
		sequence, err := strconv.ParseUint(string(m.Data), 10, 64)
		if err != nil {
			return
		}
		p, ok := about(sequence)
		if !ok {
			return
		}
		if answer, err := json.Marshal(p); err == nil {
			_ = m.Respond(answer) // the caller asks again
		}
	})
	if err != nil { // the bus is closed
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() } // fails only once the connection, and with it the subscription, is closed
}

// skip marks a delivery that is held here; see [Bus.Skip].
func (g *group) skip(sequence uint64) (p Progress, ok bool) {
	if p, ok = g.progress(sequence); !ok {
		return p, false
	}
	for _, r := range g.all() {
		if t := r.ledger.find(sequence); t != nil {
			t.skipped.Store(true)
			g.queue.retryNow(t)
		}
	}
	return p, true
}

// errSkipped is why a delivery goes to DEAD that an operator has skipped.
func errSkipped(last error) error {
	return apperr.New(apperr.Invalid, "SKIPPED", "An operator has skipped it").Wrap(last)
}

// find returns the task of a delivery that is held here.
func (l *ledger) find(sequence uint64) *task {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, t := range l.held {
		if id.sequence == sequence {
			return t
		}
	}
	return nil
}

// lastFailure is why the last try of a task did not work; nil: none has failed.
func (l *ledger) lastFailure(t *task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.failed == nil {
		return nil
	}
	return errors.New(t.failed.reason)
}

// progress finds a delivery by its sequence in the partitions that are read here.
func (g *group) progress(sequence uint64) (p Progress, ok bool) {
	for _, r := range g.all() {
		if p, ok = r.ledger.progress(sequence); ok {
			return p, true
		}
	}
	return p, false
}

// progress finds a delivery by its sequence. It is a linear search: only operators ask.
func (l *ledger) progress(sequence uint64) (Progress, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, t := range l.held {
		if id.sequence != sequence {
			continue
		}
		if t.failed == nil {
			return Progress{State: ProgressWaiting, Attempts: t.delivered}, true
		}
		return Progress{State: ProgressRetrying, Attempts: t.failed.attempt, LastError: t.failed.reason, NextTry: t.failed.next.UTC()}, true
	}
	for id, end := range l.done {
		if id.sequence != sequence {
			continue
		}
		if end.ack == ackTerm {
			return Progress{State: ProgressDead, Attempts: end.attempts}, true
		}
		return Progress{State: ProgressDone, Attempts: end.attempts}, true
	}
	return Progress{}, false
}
