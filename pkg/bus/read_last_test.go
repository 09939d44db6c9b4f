package bus_test

import (
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestLast(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	on := subject.Reply("app", "visitor")
	if _, err := b.Last(t.Context(), subject.Replies, on); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("got %v from an empty stream, want NotFound", err)
	}
	last := reply("visitor", 2)
	for _, r := range []event.Reply{reply("visitor", 1), last, reply("other", 3)} {
		if err := b.Publish(t.Context(), event.Derived(), r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.Last(t.Context(), subject.Replies, on)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != last.EventID() || got.Subject != on || string(got.Data) != string(last.AppendJSON(nil)) || time.Since(got.Time).Abs() > time.Hour {
		t.Errorf("got %s %s %s at %v, want the second reply", got.ID, got.Subject, got.Data, got.Time)
	}

	e.nats.Stop()
	timetest.Until(t, "NATS is disconnected", func() bool { return !b.JetStream().Conn().IsConnected() })
	if _, err := b.Last(t.Context(), subject.Replies, on); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("got %v without NATS, want Unavailable", err)
	}
}
