package processor

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/testkit/bustest"
)

func TestWhatWaitsForChannels(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	now := time.Now
	g := newOutboundGauge(b, func() time.Time { return now() }, slog.New(slog.DiscardHandler), nil)
	measure := func() int {
		t.Helper()
		if err := g.measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		return testutil.CollectAndCount(g.waiting)
	}
	waited := func() float64 { return testutil.ToFloat64(g.waiting.WithLabelValues("phone")) }
	if n := measure(); n != 1 || waited() != 0 {
		t.Errorf("got %d channels of an empty stream, and a wait of %v s", n, waited())
	}
	for _, company := range []string{"one", "two"} {
		err := b.Publish(t.Context(), event.Derived(), event.OutboundMessage{
			CompanyID: company, Channel: chat.ChannelPhone, ChatID: "chat", ChatUserID: "visitor",
			Message: chat.Message{
				ID: chat.NewID(), CreatedAt: time.Now(), Type: chat.Text, Data: json.RawMessage(`{"text":"Hello"}`),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	now = func() time.Time { return time.Now().Add(time.Hour) }
	if n := measure(); n != 1 || waited() < time.Hour.Seconds()-1 || waited() > time.Hour.Seconds()+60 {
		t.Errorf("got %d channels, and %v s for the oldest, want one hour of one", n, waited())
	}
}
