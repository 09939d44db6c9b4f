package realtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

const (
	// receiptPause is how long reports are gathered, and how long after a failure they are tried again.
	receiptPause = 100 * time.Millisecond
	receiptRetry = time.Second
	// receiptLimit is how many reports may wait while NATS is not connected. Further ones are lost: the widget will say, when it
	// loads the history or reads the message, that it was delivered.
	receiptLimit      = 16 << 10
	receiptsAtOnce    = 64
	receiptFinalFlush = 2 * time.Second
)

// receiptTail ends the payload of a message whose sender wants a receipt: the widget then reports when it was read.
const receiptTail = `,"receipt":true}`

// Publisher returns after the event is in its stream.
type Publisher interface {
	Publish(ctx context.Context, e event.Event) error
}

// Receipts reports delivered messages in the background; deliveries do not wait for it. Each gateway reports a message once, and the
// stream drops the reports of the others.
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

// Note records that a message was delivered to a socket of a visitor of that company.
func (r *Receipts) Note(company string, receipt metadata.Receipt) {
	r.add(event.MessageStatusChanged{
		CompanyID: company, MessageID: receipt.MessageID, ChatID: receipt.ChatID, Status: chat.StatusDelivered, At: r.now(),
	})
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

// Run reports until ctx is done, and then reports the rest.
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
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiptFinalFlush)
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
