package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

const (
	// receiptPause is how long reports are gathered, and how long after a failure they are tried again.
	receiptPause = 100 * time.Millisecond
	receiptRetry = time.Second
	// receiptLimit is how many reports may wait for a NATS that is away. What is more is lost: the widget will say, when it
	// loads the history or reads the message, that it was delivered.
	receiptLimit    = 16 << 10
	receiptsAtOnce  = 64
	receiptFarewell = 2 * time.Second
)

// receiptTail is how the payload of a message ends whose sender wants to know what becomes of it. It is the last member, so
// that looking for it costs nothing; and the widget sees it too, and knows of which messages to say that they were read.
const receiptTail = `,"receipt":true}`

// payloadAsks tells whether the sender of a payload asks for a receipt.
func payloadAsks(payload []byte) bool { return bytes.HasSuffix(payload, []byte(receiptTail)) }

// eventAsks is payloadAsks for what appendEvent has written. It returns the payload.
func eventAsks(data []byte) (payload []byte, ok bool) {
	i := bytes.LastIndexByte(bytes.TrimSuffix(data, []byte(eventTail)), '"')
	if i < len(eventHead)+1 || !payloadAsks(data[:i-1]) {
		return nil, false
	}
	return data[len(eventHead) : i-1], true
}

// Publisher returns after the event is in its stream.
type Publisher interface {
	Publish(ctx context.Context, e event.Event) error
}

// Receipts reports that messages were delivered, in its own time: nobody who delivers waits for it. A message that is handed
// to several sockets is reported by each gateway once, and the stream drops the others' word.
type Receipts struct {
	publisher Publisher
	metrics   *Metrics
	now       func() time.Time
	logger    *slog.Logger

	wake chan struct{} // holds at most one

	mu      sync.Mutex
	waiting []event.MessageStatusChanged
}

// NewReceipts returns receipts that are reported while Run runs.
func NewReceipts(publisher Publisher, metrics *Metrics, logger *slog.Logger, now func() time.Time) *Receipts {
	return &Receipts{publisher: publisher, metrics: metrics, logger: logger, now: now, wake: make(chan struct{}, 1)}
}

// Note says that the message of a payload was handed to a socket of a visitor of that company.
func (r *Receipts) Note(company string, payload []byte) {
	var m struct {
		ID     string `json:"id"`
		ChatID string `json:"chatId"`
	}
	if json.Unmarshal(payload, &m) != nil {
		return // it is ours, or from somebody who writes to Redis and has no receipt to ask for
	}
	r.add(event.MessageStatusChanged{CompanyID: company, MessageID: m.ID, ChatID: m.ChatID, Status: chat.StatusDelivered, At: r.now()})
}

func (r *Receipts) add(reports ...event.MessageStatusChanged) {
	r.mu.Lock()
	room := max(0, receiptLimit-len(r.waiting))
	lost := max(0, len(reports)-room)
	r.waiting = append(r.waiting, reports[:len(reports)-lost]...)
	r.mu.Unlock()
	if lost > 0 {
		r.metrics.receipts.WithLabelValues(receiptLost).Add(float64(lost))
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Receipts) take() []event.MessageStatusChanged {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.waiting
	r.waiting = nil
	return taken
}

// Run reports until ctx is done, and then what is left.
func (r *Receipts) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-r.wake:
			pause(ctx, receiptPause)
			if !r.flush(context.WithoutCancel(ctx)) {
				pause(ctx, receiptRetry)
			}
		}
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiptFarewell)
	defer cancel()
	r.flush(rest)
}

// flush reports all that waits, and reports false if some of it has to wait on.
func (r *Receipts) flush(ctx context.Context) bool {
	var group errgroup.Group
	group.SetLimit(receiptsAtOnce)
	var mu sync.Mutex
	var failed []event.MessageStatusChanged
	for _, report := range r.take() {
		group.Go(func() error {
			err := r.publisher.Publish(ctx, report)
			switch {
			case err == nil:
				r.metrics.receipts.WithLabelValues(receiptReported).Inc()
			case apperr.Is(err, apperr.Invalid):
				r.metrics.receipts.WithLabelValues(receiptLost).Inc()
				r.logger.WarnContext(ctx, "a delivery cannot be reported", "messageId", report.MessageID, "error", err)
			default:
				mu.Lock()
				failed = append(failed, report)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // returns no errors
	if len(failed) == 0 {
		return true
	}
	r.metrics.receipts.WithLabelValues(receiptFailed).Add(float64(len(failed)))
	r.add(failed...)
	return false
}
