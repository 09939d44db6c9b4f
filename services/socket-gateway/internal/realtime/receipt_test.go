package realtime

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
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
	if data := encodeReply(asks, 7, 0); !strings.HasSuffix(string(data), `"chatId":"k","receipt":true},"7"]`) {
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
		r := newReceiptQueue(d, metrics, slog.New(slog.DiscardHandler), time.Now)
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
func TestReportedRecoveries(t *testing.T) {
	t.Parallel()
	r := newReportedRecoveries()
	for _, step := range []struct {
		room     string
		read     offsetRange
		reported offsetRange
	}{
		{"a", offsetRange{10, 20}, offsetRange{}},
		{"a", offsetRange{10, 30}, offsetRange{10, 20}},
		{"b", offsetRange{10, 30}, offsetRange{}},
		{"a", offsetRange{5, 30}, offsetRange{10, 30}},
		{"a", offsetRange{20, 40}, offsetRange{5, 30}},
	} {
		if got := r.extend(step.room, step.read); got != step.reported {
			t.Errorf("%s reads %v: got %v reported, want %v", step.room, step.read, got, step.reported)
		}
	}
	if range5to10 := (offsetRange{5, 10}); range5to10.has(5) || !range5to10.has(6) || !range5to10.has(10) || range5to10.has(11) {
		t.Error("the range above 5 up to 10 has other offsets than 6 to 10")
	}
}
