package recorder_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/processor/internal/recorder"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// steps are the statuses in their order.
var steps = []string{"", chat.StatusAccepted, chat.StatusStored, chat.StatusFailed, chat.StatusDelivered, chat.StatusRead}

// at returns the time n milliseconds after a fixed one.
func at(milliseconds int) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond)
}

// room is a recorder with a store that has a visitor's chat.
type room struct {
	store     store.Store
	recorder  *recorder.Recorder
	chat      chat.Chat
	published *published
}

// published are the events that a recorder publishes.
type published []event.Event

func (p *published) Publish(_ context.Context, _ event.Account, e event.Event) error {
	*p = append(*p, e)
	return nil
}

func newRoom(t *testing.T) room {
	t.Helper()
	s := storetest.Open(t)
	registered, err := s.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: uuid.NewString(), CompanyID: uuid.NewString(), AppID: uuid.NewString()}})
	v := registered.Visitor
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(0)})
	if err != nil {
		t.Fatal(err)
	}
	var told published
	r := recorder.New(recorder.Config{
		Publisher:    &told,
		History:      s,
		Chats:        s,
		Statuses:     s,
		Controls:     s,
		Applications: s,
		Now:          func() time.Time { return at(2) },
	})
	return room{s, r, c, &told}
}

func (r room) reply(receipt bool) event.Reply {
	return event.Reply{
		CompanyID: r.chat.CompanyID, AppID: r.chat.AppID, ChatUserID: r.chat.ChatUserID, ChatID: r.chat.ID, Receipt: receipt,
		Message: chat.Message{ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: at(1), Type: chat.Text, Data: json.RawMessage(`{"text":"hi"}`)},
	}
}

func (r room) report(e event.Reply, status string, when int) event.MessageStatusChanged {
	return event.MessageStatusChanged{CompanyID: e.CompanyID, MessageID: e.Message.ID, Status: status, At: at(when), ChatID: e.ChatID}
}

// Every order of all updates of a message, each also twice: the status never steps back, and the result is the same.
func TestStatusNeverStepsBackInAnyOrder(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	for order := range permutations(4) {
		e := r.reply(true)
		hear := []func(context.Context) error{
			func(ctx context.Context) error { return r.recorder.Reply(ctx, e) },
			func(ctx context.Context) error {
				return r.recorder.StatusChanged(ctx, r.report(e, chat.StatusDelivered, 3))
			},
			func(ctx context.Context) error { return r.recorder.StatusChanged(ctx, r.report(e, chat.StatusRead, 5)) },
			func(ctx context.Context) error {
				return r.recorder.Abandon(ctx, recorder.Abandoned{CompanyID: e.CompanyID, MessageID: e.Message.ID, AcceptedAt: at(1), At: at(4), Reason: "gone"})
			},
		}
		last := ""
		for n, i := range append(order, order[:2]...) {
			if err := hear[i](t.Context()); err != nil {
				t.Fatal(err)
			}
			s, err := r.store.MessageStatus(t.Context(), e.CompanyID, e.Message.ID)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Index(steps, s.Status()) < slices.Index(steps, last) {
				t.Fatalf("order %v: got %s after %s, want no step back", order[:n+1], s.Status(), last)
			}
			last = s.Status()
		}
		want := chat.MessageStatus{
			ChatID: r.chat.ID, AcceptedAt: at(1), StoredAt: at(2), DeliveredAt: at(3), ReadAt: at(5), Failure: chat.Failure{At: at(4), Reason: "gone"},
		}
		if got, err := r.store.MessageStatus(t.Context(), e.CompanyID, e.Message.ID); err != nil || got != want {
			t.Fatalf("order %v: got %+v and %v, want %+v", order, got, err, want)
		}
		if receipts, err := r.store.ChatReceipts(t.Context(), r.chat.ID); err != nil || len(receipts.Undelivered) > 0 && order[0] == 0 {
			t.Fatalf("order %v: got %v and %v undelivered, want none", order, receipts.Undelivered, err)
		}
	}
}

// A message that a consumer has given up is reported as failed, unless it was delivered all the same.
func TestAbandonedMessageIsReportedOnce(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	e := r.reply(true)
	abandoned := recorder.Abandoned{
		CompanyID: e.CompanyID, MessageID: e.Message.ID, AcceptedAt: at(1), At: at(4), Reason: "gone",
	}
	if err := r.recorder.Reply(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if err := r.recorder.Abandon(t.Context(), abandoned); err != nil {
		t.Fatal(err)
	}
	want := r.report(e, chat.StatusFailed, 4)
	want.Reason = "gone"
	if told := *r.published; len(told) != 1 || told[0] != want {
		t.Fatalf("got the events %+v, want %+v", told, want)
	}
	if err := r.recorder.StatusChanged(t.Context(), r.report(e, chat.StatusDelivered, 3)); err != nil {
		t.Fatal(err)
	}
	if err := r.recorder.Abandon(t.Context(), abandoned); err != nil {
		t.Fatal(err)
	}
	if told := *r.published; len(told) != 1 {
		t.Errorf("got the events %+v, want no more: the message was delivered", told)
	}
}

// permutations yields every order of the numbers below n.
func permutations(n int) func(func([]int) bool) {
	return func(yield func([]int) bool) {
		var walk func(order []int) bool
		walk = func(order []int) bool {
			if len(order) == n {
				return yield(slices.Clone(order))
			}
			for i := range n {
				if !slices.Contains(order, i) && !walk(append(order, i)) {
					return false
				}
			}
			return true
		}
		walk(nil)
	}
}

// A visitor has read beyond a message before the recorder stores it: the read is an event, for webhooks as well.
func TestMessageStoredAfterTheReadIsRead(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	e := r.reply(true)
	if _, err := r.store.ReadUpTo(t.Context(), r.chat.ID, e.Message, at(7)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // redelivery
		if err := r.recorder.Reply(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	want := r.report(e, chat.StatusRead, 7)
	if told := *r.published; len(told) != 2 || told[0] != want || told[0].EventID() != told[1].EventID() {
		t.Fatalf("got the events %+v, want %+v, and the same again", told, want)
	}
	if err := r.recorder.StatusChanged(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if s, err := r.store.MessageStatus(t.Context(), e.CompanyID, e.Message.ID); err != nil || !s.ReadAt.Equal(at(7)) {
		t.Errorf("got %+v and %v, want it read at %v", s, err, at(7))
	}
	if unread, err := r.store.ReadUpTo(t.Context(), r.chat.ID, e.Message, at(8)); err != nil || len(unread) != 0 {
		t.Errorf("got %v and %v, want no pending read receipt", unread, err)
	}
}

// A bot's reply has no status.
func TestRepliesWithoutReceiptLeaveNoStatus(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	e := r.reply(false)
	if err := r.recorder.Reply(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if s, err := r.store.MessageStatus(t.Context(), e.CompanyID, e.Message.ID); err == nil {
		t.Errorf("got %+v, want nothing", s)
	}
	if receipts, err := r.store.ChatReceipts(t.Context(), r.chat.ID); err != nil || len(receipts.Undelivered) > 0 {
		t.Errorf("got %v and %v, want no pending receipt", receipts.Undelivered, err)
	}
}
