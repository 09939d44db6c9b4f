package bus_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

// charges is a Meter that notes what it is asked to charge.
type charges struct {
	fills []float64
	bytes int
}

func (c *charges) Charge(_ context.Context, a event.Account, bytes int, fill float64) (event.Account, error) {
	c.fills = append(c.fills, fill)
	c.bytes += bytes
	return a, nil
}

// A payer's own streams count as full as they are. Those that its events reach only in passing count when they are
// nearly full.
func TestBudgetsKnowHowFullTheirStreamsAre(t *testing.T) {
	t.Parallel()
	const limit = 8192
	payers := []event.Account{
		event.ForVisitor("c", "a", "v", "192.0.2.1"), event.ForCompany("c"),
		event.ForAgent("c", "u"), event.ForBot("c", "a", "v"),
	}
	for _, c := range []struct {
		name, subject string
		bytes         int
		want          [4]bool // which of the payers take the stream for at least half full
	}{
		{"INBOUND", subject.VisitorMessage("app", "visitor"), limit * 3 / 4, [4]bool{true, false, false, false}},
		{"INBOUND, nearly full", subject.VisitorMessage("app", "visitor"), limit * 15 / 16, [4]bool{true, false, true, false}},
		{"REPLIES", subject.Reply("app", "visitor"), limit * 3 / 4, [4]bool{false, true, true, true}},
		{"REPLIES, nearly full", subject.Reply("app", "visitor"), limit * 15 / 16, [4]bool{true, true, true, true}},
		{"STATUS", subject.MessageStatus("c", "m"), limit * 3 / 4, [4]bool{false, true, true, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var meter charges
			url := bustest.StartSized(t, bus.StreamSettings{MaxBytes: limit}).URL()
			b := bustest.OpenConfig(t, bus.Config{URL: url, Meter: &meter})
			if _, err := b.JetStream().Publish(t.Context(), c.subject, make([]byte, c.bytes-128)); err != nil {
				t.Fatal(err)
			}
			if err := b.MeasureStreams(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, payer := range payers {
				if _, err := b.Charge(t.Context(), payer, 1); err != nil {
					t.Fatal(err)
				}
				if got := meter.fills[i] >= 0.5; got != c.want[i] {
					t.Errorf("payer %d: got a fill of %.2f, want at least half: %v", payer.Payer, meter.fills[i], c.want[i])
				}
			}
		})
	}
}

// A small message that asks for reports costs what its reports take in STATUS, which nobody else pays for.
func TestReportsAreCharged(t *testing.T) {
	t.Parallel()
	var meter charges
	url := bustest.StartSized(t, bus.StreamSettings{MaxBytes: 1 << 20}).URL()
	b := bustest.OpenConfig(t, bus.Config{URL: url, Meter: &meter})
	id, company := chat.NewID(), chat.NewID()
	message := chat.Message{ID: id, Type: chat.Text, Data: []byte(`{"text":"a"}`), CreatedAt: time.Now()}
	e := event.Reply{
		CompanyID: company, AppID: "app", ChatUserID: "visitor", ChatID: chat.NewID(), Message: message, Receipt: true,
	}
	if err := b.Publish(t.Context(), event.ForAgent(company, "u"), e); err != nil {
		t.Fatal(err)
	}
	for _, status := range []string{chat.StatusDelivered, chat.StatusRead} {
		publish(t, b, event.MessageStatusChanged{
			CompanyID: company, MessageID: id, Status: status, At: time.Now(), ChatID: e.ChatID,
		})
	}
	stream, err := b.JetStream().Stream(t.Context(), subject.Status)
	if err != nil {
		t.Fatal(err)
	}
	if stored := int(stream.CachedInfo().State.Bytes); meter.bytes < stored {
		t.Errorf("got %d bytes charged, want at least the %d of the reports", meter.bytes, stored)
	}
}

// Neither a flood beyond a budget nor other failing events must fill DEAD, which all tenants share and which stops the
// consumers when it is full.
func TestBudgetsDoNotFillDead(t *testing.T) {
	t.Parallel()
	url := bustest.StartSized(t, bus.StreamSettings{MaxBytes: 16384}).URL()
	b := bustest.Open(t, url)
	refuse := func(context.Context, bus.Delivery) error { return bus.Permanent(apperr.ByteBudgetExceeded.New()) }
	publish(t, b, reply("visitor", 0))
	consume(t, b, bus.Consumer{Handle: refuse})
	awaitEmpty(t, b, "tester")
	found := letters(t, b, subject.Replies, "tester")
	if len(found) != 1 || len(found[0].Data) > 0 || !found[0].Truncated {
		t.Fatalf("got %+v, want one without its payload", found)
	}
	if err := b.Replay(t.Context(), found[0]); err != nil { // with the payload of the original
		t.Errorf("replaying it: %v", err)
	}
	awaitEmpty(t, b, "tester")
	if _, err := b.JetStream().Publish(t.Context(), subject.DeadLetter("X", "y"), make([]byte, 8192)); err != nil {
		t.Fatal(err)
	}
	if err := b.MeasureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := streamMessages(t, b, subject.Dead)
	publish(t, b, reply("visitor", 1))
	awaitEmpty(t, b, "tester")
	if got := streamMessages(t, b, subject.Dead); got != before {
		t.Errorf("with DEAD half full: got %d dead letters, want %d as before", got, before)
	}
	publish(t, b, reply("visitor", 2))
	refuse = func(context.Context, bus.Delivery) error { return bus.Permanent(apperr.BadRequest.New()) }
	consume(t, b, bus.Consumer{Durable: "other", Handle: refuse})
	awaitEmpty(t, b, "other")
	found = letters(t, b, subject.Replies, "other")
	if len(found) == 0 || slices.ContainsFunc(found, func(l bus.DeadLetter) bool { return len(l.Data) > 0 }) {
		t.Errorf("with DEAD half full: got %+v, want letters without payload", found)
	}
	if _, err := b.JetStream().Publish(t.Context(), subject.DeadLetter("X", "y"), make([]byte, 3500)); err != nil {
		t.Fatal(err)
	}
	if err := b.MeasureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	before = streamMessages(t, b, subject.Dead)
	consume(t, b, bus.Consumer{Durable: "last", Handle: refuse})
	awaitEmpty(t, b, "last")
	if got := streamMessages(t, b, subject.Dead); got != before {
		t.Errorf("with the last eighth of DEAD left: got %d dead letters, want %d as before", got, before)
	}
}
