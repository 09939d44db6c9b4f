package socketgateway_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

// companyReply publishes a reply whose sender asks for a receipt, and returns its id.
func (w *world) companyReply(v visitor) string {
	w.t.Helper()
	e := event.Reply{
		CompanyID: "company", AppID: v.appID, ChatUserID: v.chatUserID, ChatID: v.chatID, Receipt: true,
		Message: chat.Message{
			ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now(), Type: chat.Text, Data: json.RawMessage(`{"text":"hi"}`),
		},
	}
	if err := w.bus.Publish(w.t.Context(), event.Derived(), e); err != nil {
		w.t.Fatal(err)
	}
	return e.Message.ID
}

// nextReport returns the next report, which is that a message of the visitor was delivered.
func nextReport(t *testing.T, reports *bustest.Collector, v visitor) event.MessageStatusChanged {
	t.Helper()
	m := reports.Next()
	e, err := event.Decode[event.MessageStatusChanged](m.Subject, m.Data)
	if err != nil || e.Status != chat.StatusDelivered || e.CompanyID != "company" || e.ChatID != v.chatID || m.Header.Get("ce-source") != "/socket-gateway" {
		t.Fatalf("got %s %s and %v, want a delivery in the visitor's chat", m.Subject, m.Data, err)
	}
	return e
}

// Whichever gateway has the visitor's sockets reports that a company's message was delivered. Nothing is
// reported for a bot's reply, or where nobody is there; who comes back gets it then.
func TestDeliveriesAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gateways := []*gateway{w.start(), w.start()} // one of them reads the stream
	reports := bustest.Collect(t, w.natsURL, subject.AllStatuses)
	for _, g := range gateways {
		v := w.visitor()
		c := connect(t, g.url, v.token)
		c.await("connect")
		w.reply(v, `{"text":"a bot's"}`)
		id := w.companyReply(v)
		c.await("message")
		if got := string(c.await("message").Data); !strings.HasSuffix(got, `,"receipt":true}`) {
			t.Errorf("got %s, want the widget to see that a receipt is asked for", got)
		}
		if e := nextReport(t, reports, v); e.MessageID != id || time.Since(e.At).Abs() > time.Hour {
			t.Errorf("got a report of %s at %v, want of %s", e.MessageID, e.At, id)
		}
	}
	if n := reports.Pending(); n != 0 {
		t.Errorf("got %d more reports, want none", n)
	}
}

// A reply passes while the visitor is away. It is reported when the gateway that the visitor comes back to
// sends it after, and not again for a client that claims to have missed it too.
func TestWhatIsRecoveredIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
	reports, passed := bustest.Collect(t, w.natsURL, subject.AllStatuses), bustest.Collect(t, w.natsURL, subject.AllPositions(subject.Replies, "socket-gateway"))
	v := w.visitor()
	c := connect(t, first.url, v.token)
	var answer struct{ PID string }
	if err := json.Unmarshal(c.await("connect").Data, &answer); err != nil {
		t.Fatal(err)
	}
	first.stop()
	missed := w.companyReply(v)
	second := w.start()
	// until the reply has passed the second gateway, which has no socket for it
	for at := (bus.Offset{}); at.Sequence == 0; {
		if err := json.Unmarshal(passed.Next().Data, &at); err != nil {
			t.Fatal(err)
		}
	}
	if n := reports.Pending(); n != 0 {
		t.Errorf("got %d reports while nobody was there, want none", n)
	}
	back := connectWith(t, second.url, "", map[string]string{"token": v.token, "pid": answer.PID})
	back.await("connect")
	back.await("message")
	if e := nextReport(t, reports, v); e.MessageID != missed {
		t.Errorf("got a report of %s, want one of the missed reply %s", e.MessageID, missed)
	}
	again := connectWith(t, second.url, "", map[string]string{"token": v.token, "pid": answer.PID})
	again.await("connect")
	again.await("message")
	next := w.companyReply(v)
	if e := nextReport(t, reports, v); e.MessageID != next {
		t.Errorf("got a report of %s, want the next one of %s", e.MessageID, next)
	}
}
