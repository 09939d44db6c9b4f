package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// The deliveries of a sparse stream arrive one by one, as soon as the server stores them. In a dense one, of at least denseRate deliveries a
// second, gatherDeliveries arrive together: waking up for each one, in the server, here and in Redis, costs more than the delivery.
const (
	sparseRound      = 32
	denseRound       = 512
	denseRate        = 1400
	denseWindow      = 100 * time.Millisecond // in which deliveries are counted
	gatherDeliveries = 20
	gatherAtLeast    = 4 * time.Millisecond
	gatherAtMost     = 12 * time.Millisecond
)

// rounds asks the server for deliveries, one request after the other. It belongs to one goroutine.
type rounds struct {
	conn     *nats.Conn
	subject  string // of the consumer's pull requests
	inbox    string
	incoming chan *nats.Msg
	sub      *nats.Subscription

	size     int         // of the round
	received int         // in the round
	kept     []*nats.Msg // deliveries of a dense round, until it ends
	last     *nats.Msg   // delivery of any round
	ended    time.Time   // the round before

	rate   float64   // of deliveries in a second, in the last window
	window time.Time // when the count began
	count  int
}

// newRounds returns the rounds of a consumer, until close.
func newRounds(conn *nats.Conn, stream, consumer string) (*rounds, error) {
	r := &rounds{
		conn: conn, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer, inbox: conn.NewInbox(),
		incoming: make(chan *nats.Msg, denseRound+64), // a round and its statuses
		window:   time.Now(),
	}
	sub, err := conn.ChanSubscribe(r.inbox, r.incoming)
	if err != nil {
		return nil, fmt.Errorf("subscribing to the deliveries: %w", err)
	}
	r.sub = sub
	return r, nil
}

func (r *rounds) close() { _ = r.sub.Unsubscribe() }

// next begins a round. A dense one begins when its deliveries have gathered, or ctx is done, and ends when the server has no more.
func (r *rounds) next(ctx context.Context) error {
	request := pullRequest{Batch: sparseRound, Expires: pullExpires, Heartbeat: pullExpires / 3}
	if r.dense() {
		request.Batch, request.NoWait = denseRound, true
		if r.received < denseRound {
			_ = sleep(ctx, r.gather()-time.Since(r.ended))
		}
	}
	r.size, r.received = request.Batch, 0
	data, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the pull request: %w", err)
	}
	if err := r.conn.PublishRequest(r.subject, r.inbox, data); err != nil {
		return fmt.Errorf("asking for deliveries: %w", err)
	}
	return nil
}

// patience is how long the server may be silent before something must be wrong.
func (r *rounds) patience() time.Duration { return pullExpires + pullExpires/3 }

// take takes a delivery, and reports whether the round has ended.
func (r *rounds) take(m *nats.Msg) (ended bool) {
	r.kept, r.last = append(r.kept, m), m
	r.received++
	return r.received == r.size
}

// taken returns the deliveries that are to be handled now: in a dense stream all of a round together.
func (r *rounds) taken(ended bool) []*nats.Msg {
	if r.dense() && !ended {
		return nil
	}
	taken := r.kept
	r.kept = nil
	return taken
}

// pending returns how many deliveries the server had left at the last one.
func (r *rounds) pending() uint64 {
	if r.last == nil {
		return 0
	}
	meta, err := r.last.Metadata()
	if err != nil {
		return 0
	}
	return meta.NumPending
}

// status reads an answer that is no delivery: it reports whether the round has ended. An error ends the session.
func (r *rounds) status(m *nats.Msg) (ended bool, err error) {
	switch status := m.Header.Get("Status"); status {
	case "100": // a sign of life
		return false, nil
	case "404", "408":
		return true, nil
	case "409", "503":
		return true, fmt.Errorf("%w: %s", errConsumerGone, m.Header.Get("Description"))
	default:
		return true, fmt.Errorf("the server refused a request: %s %s", status, m.Header.Get("Description"))
	}
}

func (r *rounds) dense() bool { return r.rate >= denseRate }

// gather returns how long deliveries gather.
func (r *rounds) gather() time.Duration {
	wait := time.Duration(gatherDeliveries / r.rate * float64(time.Second))
	return min(max(wait, gatherAtLeast), gatherAtMost)
}

// end measures the rate of deliveries.
func (r *rounds) end() {
	r.ended = time.Now()
	r.count += r.received
	if passed := r.ended.Sub(r.window); passed >= denseWindow {
		r.rate = float64(r.count) / passed.Seconds()
		r.window, r.count = r.ended, 0
	}
}
