package bus_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// What a durable consumer has acknowledged is claimed, of the subjects that it wants. One that only reads along claims
// nothing.
func TestUnclaimed(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, startEngine(t).nats.URL())
	send := func(channel chat.Channel, companyID string) {
		t.Helper()
		err := b.Publish(t.Context(), event.Derived(), event.OutboundMessage{
			CompanyID: companyID, Channel: channel, ChatID: "chat", ChatUserID: "visitor",
			Message: chat.Message{
				ID: chat.NewID(), CreatedAt: time.Now(), Type: chat.Text, Data: json.RawMessage(`{"text":"a"}`),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	unclaimed := func() (subjects []string) {
		t.Helper()
		found, err := b.Unclaimed(t.Context(), subject.Outbound)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range found {
			if age := time.Since(u.Since); age < 0 || age > time.Minute {
				t.Errorf("got an age of %v", age)
			}
			subjects = append(subjects, u.Subject)
		}
		return subjects
	}
	equal := func(got []string, want ...string) bool { return slices.Equal(got, want) }
	if got := unclaimed(); !equal(got) {
		t.Errorf("got %v of an empty stream", got)
	}
	send("phone", "one")
	send("mail", "two")
	if got := unclaimed(); !equal(got, "chat.out.phone.one", "chat.out.mail.two") {
		t.Errorf("got %v, want both, the oldest first", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- b.Consume(ctx, bus.Consumer{
			Stream: subject.Outbound, Durable: "phones", Filters: []string{"chat.out.phone.*"}, Order: bus.ByStream,
			Handle: func(context.Context, bus.Delivery) error { return nil },
		})
	}()
	timetest.Until(t, "the message to a phone is claimed", func() bool { return equal(unclaimed(), "chat.out.mail.two") })
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	send("phone", "three")
	if got := unclaimed(); !equal(got, "chat.out.mail.two", "chat.out.phone.three") {
		t.Errorf("got %v, want what came after the consumer", got)
	}
}
