package bus

// What operators ask the processes of a consumer: the progress of a delivery, and to skip it.

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/proto-events/subject"
)

// progressTimeout limits a request. Replicas that do not hold the delivery do not respond.
const progressTimeout = time.Second

// ProgressState is the state of a delivery in a consumer.
type ProgressState string

const (
	ProgressWaiting  ProgressState = "waiting"      // received; queued or in its first try
	ProgressRetrying ProgressState = "retrying"     // failed at least once; a retry follows
	ProgressDone     ProgressState = "acknowledged" // handled
	ProgressDead     ProgressState = "dead"         // given up: a dead letter is in DEAD
)

// Progress is the progress of a delivery as known to the process that handles it. JetStream counts deliveries
// only, not retries within a process.
type Progress struct {
	State     ProgressState `json:"state"`
	Attempts  int           `json:"attempts"`
	LastError string        `json:"lastError,omitempty"` // of the last failed try: "<error code>: <error text>"
	NextTry   time.Time     `json:"nextTry,omitzero"`
}

// Progress requests the state of a delivery from the processes of a consumer. NotFound: no process holds it,
// because none runs, it has not been delivered yet, or it was finished long ago.
func (b *Bus) Progress(ctx context.Context, stream, consumer string, sequence uint64) (Progress, error) {
	return b.requestProgress(ctx, subject.Progress(stream, consumer), consumer, sequence)
}

// requestProgress asks the processes of a consumer; the one that holds the delivery answers.
func (b *Bus) requestProgress(ctx context.Context, subj, consumer string, sequence uint64) (Progress, error) {
	p, err := rpc.Ask[Progress](ctx, b.RPC(), rpc.Question{
		Subject: subj,
		Body:    strconv.AppendUint(nil, sequence, 10),
		Service: "consumer " + consumer,
		Timeout: progressTimeout,
	})
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) {
		const text = "No process of the consumer holds the delivery"
		return Progress{}, apperr.New(apperr.NotFound, "PROGRESS_UNKNOWN", text)
	}
	return p, err
}

// Skip makes a consumer give up on a delivery that it keeps retrying: the delivery becomes a dead letter, and
// later deliveries of the key proceed. It does not interrupt a running try; if that try succeeds, the
// delivery is acknowledged instead. Skip returns the state before the request, and NotFound as [Bus.Progress]
// does.
func (b *Bus) Skip(ctx context.Context, stream, consumer string, sequence uint64) (Progress, error) {
	return b.requestProgress(ctx, subject.Skip(stream, consumer), consumer, sequence)
}

// serveProgress responds to [Bus.Progress] and [Bus.Skip] until stop is called.
func (g *group) serveProgress() (stop func()) {
	stopProgress := g.serve(subject.Progress(g.cfg.Stream, g.cfg.Durable), g.progress)
	stopSkip := g.serve(subject.Skip(g.cfg.Stream, g.cfg.Durable), g.skip)
	return func() {
		stopProgress()
		stopSkip()
	}
}

// serve responds to requests on subj about deliveries that this process holds.
func (g *group) serve(subj string, lookup func(sequence uint64) (Progress, bool)) (stop func()) {
	sub, err := g.bus.conn.Subscribe(subj, func(m *nats.Msg) {
		sequence, err := strconv.ParseUint(string(m.Data), 10, 64)
		if err != nil {
			return
		}
		p, ok := lookup(sequence)
		if !ok {
			return
		}
		if response, err := json.Marshal(p); err == nil {
			_ = m.Respond(response) // the caller retries
		}
	})
	if err != nil { // the bus is closed
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() } // fails only once the connection, and with it the subscription, is closed
}

// skip marks a held delivery as skipped and ends its wait for a retry; see [Bus.Skip].
func (g *group) skip(sequence uint64) (p Progress, ok bool) {
	p, ok = g.progress(sequence)
	if !ok {
		return p, false
	}
	for _, active := range g.activePartitions() {
		if t := active.ledger.find(sequence); t != nil {
			t.skipped.Store(true)
			g.queue.retryNow(t)
		}
	}
	return p, true
}

// errSkipped returns the reason for the dead letter of a skipped delivery.
func errSkipped(last error) error {
	return apperr.New(apperr.Invalid, "SKIPPED", "Skipped by an operator").Wrap(last)
}

// progress returns the progress of a delivery in the partitions of this replica.
func (g *group) progress(sequence uint64) (p Progress, ok bool) {
	for _, active := range g.activePartitions() {
		p, ok = active.ledger.progress(sequence)
		if ok {
			return p, true
		}
	}
	return p, false
}
