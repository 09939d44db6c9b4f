package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// The deliveries of a sparse stream are pulled one by one, as soon as the server stores them. In a dense
// stream, with at least denseRate deliveries per second, rounds start when about gatherDeliveries are
// available: a wake-up per delivery, in the server, here and in Redis, costs more than the delivery itself.
const (
	sparseRound      = 32
	denseRound       = 512
	denseRate        = 1400
	denseWindow      = 100 * time.Millisecond // measurement window of the rate
	gatherDeliveries = 20
	gatherAtLeast    = 4 * time.Millisecond
	gatherAtMost     = 12 * time.Millisecond
)

// pullRequest is the pull request of the JetStream API.
type pullRequest struct {
	Batch     int           `json:"batch"`
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat"`
	NoWait    bool          `json:"no_wait,omitempty"` // end the request when no more messages are available
}

// rounds pulls deliveries with one request at a time; a round is one request. It is not safe for concurrent use.
type rounds struct {
	conn     *nats.Conn
	subject  string // of the consumer's pull requests
	inbox    string
	incoming chan *nats.Msg
	sub      *nats.Subscription

	size     int         // batch size of the round
	received int         // deliveries in the round
	buffered []*nats.Msg // deliveries not returned by ready yet
	last     *nats.Msg   // last delivery of any round
	ended    time.Time   // end of the previous round

	rate   float64   // deliveries per second in the last window
	window time.Time // start of the current window
	count  int
}

// newRounds subscribes for the deliveries of a consumer. The caller must call close.
func newRounds(conn *nats.Conn, stream, consumer string) (*rounds, error) {
	r := &rounds{
		conn: conn, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer, inbox: conn.NewInbox(),
		incoming: make(chan *nats.Msg, denseRound+64), // a round and its status messages
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

// next starts a round. A dense round starts after its deliveries have gathered, or ctx is done, and ends when
// the server has no more.
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
		return fmt.Errorf("sending a pull request: %w", err)
	}
	return nil
}

// silenceTimeout is how long the server may be silent before the session counts as broken.
func (r *rounds) silenceTimeout() time.Duration { return pullExpires + pullExpires/3 }

// add adds a delivery and reports whether it completes the round.
func (r *rounds) add(m *nats.Msg) (ended bool) {
	r.buffered, r.last = append(r.buffered, m), m
	r.received++
	return r.received == r.size
}

// ready returns the deliveries to handle now. In a dense stream it returns none until the round has ended.
func (r *rounds) ready(ended bool) []*nats.Msg {
	if r.dense() && !ended {
		return nil
	}
	ready := r.buffered
	r.buffered = nil
	return ready
}

// pending returns the number of messages pending on the server as of the last delivery.
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

// status handles a status message and reports whether the round has ended. An error ends the session.
func (r *rounds) status(m *nats.Msg) (ended bool, err error) {
	switch status := m.Header.Get("Status"); status {
	case "100": // heartbeat
		return false, nil
	case "404", "408":
		return true, nil
	case "409", "503":
		return true, fmt.Errorf("%w: %s", errConsumerGone, m.Header.Get("Description"))
	default:
		return true, fmt.Errorf("pull request rejected: %s %s", status, m.Header.Get("Description"))
	}
}

func (r *rounds) dense() bool { return r.rate >= denseRate }

// gather returns the pause before a dense round.
func (r *rounds) gather() time.Duration {
	wait := time.Duration(gatherDeliveries / r.rate * float64(time.Second))
	return min(max(wait, gatherAtLeast), gatherAtMost)
}

// end ends a round and updates the rate.
func (r *rounds) end() {
	r.ended = time.Now()
	r.count += r.received
	if passed := r.ended.Sub(r.window); passed >= denseWindow {
		r.rate = float64(r.count) / passed.Seconds()
		r.window, r.count = r.ended, 0
	}
}
