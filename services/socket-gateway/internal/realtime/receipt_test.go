package realtime

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

func aReply(receipt bool, text string) *event.Reply {
	return &event.Reply{ChatID: "k", Receipt: receipt, Message: chat.Message{ID: "m", Type: chat.Text, Data: []byte(text)}}
}

// The widget sees that a receipt is asked for, and the gateways know of which message.
func TestOnlyWhatAsksGetsAReceipt(t *testing.T) {
	t.Parallel()
	asks := aReply(true, `{"text":"x"}`)
	if data := encodeReply(asks, bus.Place{Sequence: 7, Time: time.UnixMilli(36)}, 0); !strings.HasSuffix(string(data), `"chatId":"k","receipt":true},"7.10"]`) {
		t.Errorf("got %s, want it to say so to the widget", data)
	}
	if got, want := receiptOf(asks), (metadata.Receipt{MessageID: "m", ChatID: "k"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := receiptOf(aReply(false, `{"text":",\"receipt\":true}","receipt":true}`)); got != (metadata.Receipt{}) {
		t.Errorf("got %+v of a reply that asks for nothing", got)
	}
}

func TestARoomAsksForAReceiptOnce(t *testing.T) {
	t.Parallel()
	a := &audience{empty: true}
	r := newTestRooms(t, a)
	r.open("room", "company", 0)
	deliver := func(offset uint64, receipt bool) {
		r.handleBroadcast(describedAt(metadata.Metadata{Offset: offset, Receipt: receiptOf(aReply(receipt, "{}"))}))
	}
	deliver(1, true) // no socket in the room
	a.empty = false
	deliver(2, false)
	deliver(3, true)
	deliver(3, true) // a redelivery
	if a.asked != 1 {
		t.Errorf("got %d receipts, want one, of what was handed to somebody", a.asked)
	}
}

// fakePublisher publishes, or fails.
type fakePublisher struct {
	mu   sync.Mutex
	err  error
	got  []event.Event
	fail int
}

func (d *fakePublisher) Publish(_ context.Context, _ event.Account, e event.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		d.fail++
		return d.err
	}
	d.got = append(d.got, e)
	return nil
}

func (d *fakePublisher) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *fakePublisher) counts() (got, failed int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.got), d.fail
}

// reporting runs receipts in virtual time; stop ends them and waits.
func reporting(t *testing.T, test func(t *testing.T, r *receiptQueue, d *fakePublisher, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		metrics, err := NewMetrics(nil)
		if err != nil {
			t.Fatal(err)
		}
		d := &fakePublisher{}
		r := newReceiptQueue(d, metrics, slog.New(slog.DiscardHandler), newRecoveryReports(nil, time.Now), time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.run(ctx) }()
		stop := func() { cancel(); <-ended }
		defer stop()
		test(t, r, d, stop)
	})
}

func TestReceiptsAreGatheredAndReported(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, r *receiptQueue, d *fakePublisher, stop func()) {
		began := time.Now()
		for range 200 {
			r.report("company", receiptOf(aReply(true, "{}")))
		}
		synctest.Wait()
		if got, _ := d.counts(); got != 0 {
			t.Errorf("got %d reports at once, want them gathered", got)
		}
		time.Sleep(2 * receiptPause)
		synctest.Wait()
		if got, _ := d.counts(); got != 200 {
			t.Fatalf("got %d reports, want 200", got)
		}
		want := event.MessageStatusChanged{CompanyID: "company", MessageID: "m", ChatID: "k", Status: chat.StatusDelivered, At: began}
		if d.got[0] != event.Event(want) {
			t.Errorf("got %+v, want %+v", d.got[0], want)
		}
		r.report("company", receiptOf(aReply(true, "{}")))
		stop()
		if got, _ := d.counts(); got != 201 {
			t.Errorf("got %d reports after the stop, want the last one too", got)
		}
	})
}

func TestReceiptsWaitForTheStream(t *testing.T) {
	t.Parallel()
	reporting(t, func(t *testing.T, r *receiptQueue, d *fakePublisher, _ func()) {
		d.set(apperr.Unreachable("NATS", errors.New("away")))
		for range receiptLimit + 10 {
			r.report("company", receiptOf(aReply(true, "{}")))
		}
		time.Sleep(5 * receiptRetry)
		synctest.Wait()
		d.set(nil)
		time.Sleep(2 * receiptRetry)
		synctest.Wait()
		if got, _ := d.counts(); got != receiptLimit {
			t.Errorf("got %d reports, want as many as may wait", got)
		}
		d.set(apperr.New(apperr.Invalid, "R", "m"))
		r.report("company", receiptOf(aReply(true, "{}")))
		_, before := d.counts()
		time.Sleep(5 * receiptRetry)
		synctest.Wait()
		if _, failed := d.counts(); failed != before+1 {
			t.Errorf("got %d tries of a report that nobody takes, want one", failed-before)
		}
	})
}

// What a client claims to have missed is reported unless an earlier recovery of the visitor has reported it.
func TestRecoveredRepliesAreReportedOnce(t *testing.T) {
	t.Parallel()
	r := newRecoveryReports(nil, time.Now)
	read := func(after, upTo uint64) missed {
		found := missed{upTo: upTo, span: offsetRange{after, upTo}}
		for offset := after + 1; offset <= upTo; offset++ {
			receipt := metadata.Receipt{MessageID: strconv.FormatUint(offset, 10)}
			found.events = append(found.events, missedEvent{at: bus.Place{Sequence: offset}, receipt: receipt})
		}
		return found
	}
	for _, step := range []struct {
		room     string
		read     missed
		reported int
	}{
		{"a", read(10, 20), 10},
		{"a", read(10, 30), 10},
		{"b", read(10, 30), 20},
		{"a", read(5, 30), 5},
		{"a", read(20, 40), 10},
		{"a", read(5, 40), 0},
		{"a", read(40, 40), 0},
	} {
		got, lost := r.take(t.Context(), "company", step.room, step.read)
		if len(got) != step.reported || lost != 0 {
			t.Errorf("%s reads %v: got %d reports and %d lost, want %d", step.room, step.read.span, len(got), lost, step.reported)
		}
	}
}

// Visitors without a reply to report do not displace others, and a company with more visitors than are remembered has
// a bound.
func TestReportsOfRecoveriesAreBounded(t *testing.T) {
	t.Parallel()
	began := time.Now()
	r := newRecoveryReports(nil, func() time.Time { return began })
	one := missed{events: []missedEvent{{at: bus.Place{Sequence: 1}, receipt: metadata.Receipt{MessageID: "1"}}}, span: offsetRange{0, 1}}
	r.take(t.Context(), "other", "first", one)
	for n := range 2 * recoveredVisitors {
		r.take(t.Context(), "company", strconv.Itoa(n), missed{span: offsetRange{0, 1}})
	}
	if again, _ := r.take(t.Context(), "other", "first", one); len(again) != 0 {
		t.Error("got the reply reported again after recoveries of nothing")
	}
	reported, lost := 0, 0
	for n := range 2 * recoveredVisitors {
		receipts, more := r.take(t.Context(), "company", strconv.Itoa(n), one)
		reported += len(receipts)
		lost += more
	}
	if reported != recoveredReports || lost != 2*recoveredVisitors-recoveredReports {
		t.Errorf("got %d reports of one company and %d lost, want %d and the rest", reported, lost, recoveredReports)
	}
}
