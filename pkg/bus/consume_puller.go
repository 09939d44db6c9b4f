package bus

// The pull requests of consume_offsets.go.

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// The deliveries of a sparse stream are pulled one by one, as soon as the server stores them. In a dense
// stream, with at least denseRate deliveries per second, batches start when about gatherDeliveries are
// available: a wake-up per delivery, in the server, here and in Redis, costs more than the delivery itself.
const (
	sparseBatch      = 32
	denseBatch       = 512
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

// batchPuller pulls deliveries with one request at a time; a batch is what one request returns. It owns the
// subscription of a consumer without acknowledgements, from newBatchPuller until close. It is not safe for
// concurrent use: the session of the consumer (consume_offsets.go) runs it.
type batchPuller struct {
	conn     *nats.Conn
	subject  string // of the consumer's pull requests
	inbox    string
	incoming chan *nats.Msg
	sub      *nats.Subscription

	size     int         // number of deliveries that the batch asked for
	received int         // deliveries in the batch
	buffered []*nats.Msg // deliveries not returned by ready yet
	last     *nats.Msg   // last delivery of any batch
	ended    time.Time   // end of the previous batch

	rate   float64   // deliveries per second in the last window
	window time.Time // start of the current window
	count  int
}

// newBatchPuller subscribes for the deliveries of a consumer. The caller must call close.
func newBatchPuller(conn *nats.Conn, stream, consumer string) (*batchPuller, error) {
	p := &batchPuller{
		conn: conn, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer, inbox: conn.NewInbox(),
		incoming: make(chan *nats.Msg, denseBatch+64), // a batch and its status messages
		window:   time.Now(),
	}
	sub, err := conn.ChanSubscribe(p.inbox, p.incoming)
	if err != nil {
		return nil, fmt.Errorf("subscribing to the deliveries: %w", err)
	}
	p.sub = sub
	return p, nil
}

func (p *batchPuller) close() { _ = p.sub.Unsubscribe() }

// next starts a batch. A dense batch starts after its deliveries have gathered, or ctx is done, and ends when
// the server has no more.
func (p *batchPuller) next(ctx context.Context) error {
	request := pullRequest{Batch: sparseBatch, Expires: pullExpires, Heartbeat: pullExpires / 3}
	if p.dense() {
		request.Batch = denseBatch
		request.NoWait = true
		if p.received < denseBatch {
			_ = sleep(ctx, p.gather()-time.Since(p.ended))
		}
	}
	p.size = request.Batch
	p.received = 0
	data, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the pull request: %w", err)
	}
	if err := p.conn.PublishRequest(p.subject, p.inbox, data); err != nil {
		return fmt.Errorf("sending a pull request: %w", err)
	}
	return nil
}

// silenceTimeout is how long the server may be silent before the session counts as broken.
func (p *batchPuller) silenceTimeout() time.Duration { return pullExpires + pullExpires/3 }

// add adds a delivery and reports whether it completes the batch.
func (p *batchPuller) add(m *nats.Msg) (ended bool) {
	p.buffered = append(p.buffered, m)
	p.last = m
	p.received++
	return p.received == p.size
}

// ready returns the deliveries to handle now. In a dense stream it returns none until the batch has ended.
func (p *batchPuller) ready(ended bool) []*nats.Msg {
	if p.dense() && !ended {
		return nil
	}
	ready := p.buffered
	p.buffered = nil
	return ready
}

// pending returns the number of messages pending on the server as of the last delivery.
func (p *batchPuller) pending() uint64 {
	if p.last == nil {
		return 0
	}
	meta, err := p.last.Metadata()
	if err != nil {
		return 0
	}
	return meta.NumPending
}

// status handles a status message and reports whether the batch has ended. An error ends the session.
func (p *batchPuller) status(m *nats.Msg) (ended bool, err error) {
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

func (p *batchPuller) dense() bool { return p.rate >= denseRate }

// gather returns the pause before a dense batch.
func (p *batchPuller) gather() time.Duration {
	wait := time.Duration(gatherDeliveries / p.rate * float64(time.Second))
	return min(max(wait, gatherAtLeast), gatherAtMost)
}

// end ends a batch and updates the rate.
func (p *batchPuller) end() {
	p.ended = time.Now()
	p.count += p.received
	if passed := p.ended.Sub(p.window); passed >= denseWindow {
		p.rate = float64(p.count) / passed.Seconds()
		p.window = p.ended
		p.count = 0
	}
}
