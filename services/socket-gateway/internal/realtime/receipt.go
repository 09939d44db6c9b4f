package realtime

// Delivery reports for senders who asked for one: room.go queues them, run publishes them to the stream
// STATUS.

import (
	"context"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

const (
	// receiptPause is how long reports are collected into a batch.
	receiptPause = 100 * time.Millisecond
	receiptRetry = time.Second
	// receiptLimit bounds the reports that are queued while NATS is not connected. Further reports are
	// dropped: loading the history or reading the message later implies the delivery.
	receiptLimit      = 16 << 10
	receiptsAtOnce    = 64
	receiptFinalFlush = 2 * time.Second
)

// receiptTail ends the payload of a message whose sender requested a receipt; it makes the widget report when
// the message is read.
const receiptTail = `,"receipt":true}`

// receiptQueue reports delivered messages in the background; deliveries do not wait for it. Each gateway reports
// a message once; the stream drops duplicates from other gateways.
type receiptQueue struct {
	publisher event.Publisher
	metrics   *Metrics
	now       func() time.Time
	logger    *slog.Logger
	recovered *recoveryReports

	wake chan struct{} // holds at most one

	mu      sync.Mutex // guards waiting
	waiting []event.MessageStatusChanged
}

// newReceiptQueue returns an empty queue of receipts, which run publishes.
func newReceiptQueue(
	publisher event.Publisher,
	metrics *Metrics,
	logger *slog.Logger,
	recovered *recoveryReports,
	now func() time.Time,
) *receiptQueue {
	return &receiptQueue{
		publisher: publisher, metrics: metrics, logger: logger, now: now,
		recovered: recovered, wake: make(chan struct{}, 1),
	}
}

// report queues the report that a message was delivered to a visitor of a company.
func (r *receiptQueue) report(company string, receipt metadata.Receipt) {
	r.add(event.MessageStatusChanged{
		CompanyID: company,
		MessageID: receipt.MessageID,
		ChatID:    receipt.ChatID,
		Status:    chat.StatusDelivered,
		At:        r.now(),
	})
}

// add queues reports up to receiptLimit, drops the rest, and wakes run.
func (r *receiptQueue) add(reports ...event.MessageStatusChanged) {
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

// reportRecovered queues the reports of what a visitor has recovered.
func (r *receiptQueue) reportRecovered(ctx context.Context, company, room string, found missed) {
	receipts, lost := r.recovered.take(ctx, company, room, found)
	r.metrics.receipts.WithLabelValues(receiptLost).Add(float64(lost))
	for _, receipt := range receipts {
		r.report(company, receipt)
	}
}

// take empties the queue.
func (r *receiptQueue) take() []event.MessageStatusChanged {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.waiting
	r.waiting = nil
	return taken
}

// run publishes reports until ctx is done, then flushes the queue.
func (r *receiptQueue) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-r.wake:
			sleep(ctx, receiptPause)
			if !r.flush(context.WithoutCancel(ctx)) {
				sleep(ctx, receiptRetry)
			}
		}
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiptFinalFlush)
	defer cancel()
	r.flush(rest)
}

// flush publishes all queued reports. It returns false if some failed and are queued again.
func (r *receiptQueue) flush(ctx context.Context) bool {
	var group errgroup.Group
	group.SetLimit(receiptsAtOnce)
	var mu sync.Mutex
	var failed []event.MessageStatusChanged
	for _, report := range r.take() {
		group.Go(func() error {
			err := r.publisher.Publish(ctx, event.Derived(), report)
			switch {
			case err == nil:
				r.metrics.receipts.WithLabelValues(receiptReported).Inc()
			case apperr.Is(err, apperr.Invalid):
				r.metrics.receipts.WithLabelValues(receiptLost).Inc()
				r.logger.WarnContext(ctx, "reporting a delivery failed", "messageId", report.MessageID, "error", err)
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

// offsetRange is the offsets above after, up to upTo.
type offsetRange struct{ after, upTo uint64 }

// has reports whether the range has the offset.
func (o offsetRange) has(offset uint64) bool { return offset > o.after && offset <= o.upTo }

const (
	// recoveredVisitors is the number of visitors whose reported replies are remembered, about 8 MiB.
	recoveredVisitors = 32 << 10
	// recoveredReports are the reports of recovered replies of a company in recoveredPer, about 19 MB; all gateways
	// together.
	recoveredReports = 32 << 10
	recoveredPer     = 48 * time.Hour
)

// recoveryReports decides which recovered replies this gateway reports. A client says itself what it has missed, and
// nobody pays for a report: without this it could have the same replies reported again and again, and the stream drops
// duplicates only for two minutes. It is safe for concurrent use by different visitors.
type recoveryReports struct {
	reported  *lru.Cache[string, offsetRange] // by room
	companies *ratelimit.Limiter              // also if the visitors are more than are remembered, or the gateways many
}

func newRecoveryReports(shared *ratelimit.Redis, now func() time.Time) *recoveryReports {
	reported, err := lru.New[string, offsetRange](recoveredVisitors)
	if err != nil {
		panic(err) // the size is positive
	}
	companies := ratelimit.New(ratelimit.Config{
		Name: "recovery-reports", Rate: config.Rate{Count: recoveredReports, Per: recoveredPer}, Redis: shared, Now: now,
	})
	return &recoveryReports{reported: reported, companies: companies}
}

// reset forgets all offsets. It must be called when the stream was recreated and its sequences restarted.
func (r *recoveryReports) reset() { r.reported.Purge() }

// take returns the receipts of a recovery that are to be reported: those that no earlier recovery of the visitor has
// reported. Between two recoveries other clients of the visitor have received the replies, which reported them. If the
// company has used up its reports, they are lost: reading a message later implies its delivery.
func (r *recoveryReports) take(
	ctx context.Context,
	companyID, room string,
	found missed,
) (receipts []metadata.Receipt, lost int) {
	reported, known := r.reported.Get(room)
	for _, e := range found.events {
		if e.receipt != (metadata.Receipt{}) && !reported.has(e.at.Sequence) {
			receipts = append(receipts, e.receipt)
		}
	}
	if len(receipts) == 0 {
		return nil, 0
	}
	if !r.companies.TakeN(ctx, companyID, len(receipts)).Allowed {
		return nil, len(receipts)
	}
	read := found.span
	if known {
		read = offsetRange{after: min(read.after, reported.after), upTo: max(read.upTo, reported.upTo)}
	}
	r.reported.Add(room, read)
	return receipts, 0
}
