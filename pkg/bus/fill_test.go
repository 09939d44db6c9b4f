package bus_test

import (
	"context"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

// fillRecorder is a Meter that notes how full the streams were at each charge.
type fillRecorder struct{ seen []float64 }

func (r *fillRecorder) Charge(_ context.Context, a event.Account, _ int, fill float64) (event.Account, error) {
	r.seen = append(r.seen, fill)
	return a, nil
}

func TestBudgetsKnowHowFullTheirStreamsAre(t *testing.T) {
	t.Parallel()
	var meter fillRecorder
	url := bustest.StartSized(t, bus.StreamSettings{MaxBytes: 4096}).URL()
	b := bustest.OpenConfig(t, bus.Config{URL: url, Meter: &meter})
	if _, err := b.JetStream().Publish(t.Context(), subject.Reply("app", "visitor"), make([]byte, 2400)); err != nil {
		t.Fatal(err)
	}
	if err := b.MeasureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, a := range []event.Account{
		event.ForAgent("c", "u"), event.ForBot("c", "a", "v"), event.ForCompany("c"), event.ForVisitor("c", "a", "v", "192.0.2.1"),
	} {
		if _, err := b.Charge(t.Context(), a, 1); err != nil {
			t.Fatal(err)
		}
	}
	for i, payer := range []string{"an agent", "a bot", "a company, whose messages become replies"} {
		if got := meter.seen[i]; got < 0.5 || got > 0.75 {
			t.Errorf("%s: got REPLIES %.2f full, want more than half", payer, got)
		}
	}
	if got := meter.seen[3]; got > 0.1 {
		t.Errorf("a visitor: got INBOUND %.2f full, want it empty", got)
	}
}

// A flood beyond a budget must not fill DEAD, which all tenants share and which stops the consumers when it is full.
func TestBudgetsDoNotFillDead(t *testing.T) {
	t.Parallel()
	url := bustest.StartSized(t, bus.StreamSettings{MaxBytes: 8192}).URL()
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
	if _, err := b.JetStream().Publish(t.Context(), subject.DeadLetter("X", "y"), make([]byte, 4096)); err != nil {
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
}
