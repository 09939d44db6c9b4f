package processor

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// A reading goes on where the one before ended, and has what that had.
func TestReadingsOfRepliesGoOn(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	began := time.Now()
	appID, visitorID := uuid.NewString(), uuid.NewString()
	publish := func() (id string) {
		e := event.Reply{CompanyID: uuid.NewString(), AppID: appID, ChatUserID: visitorID, ChatID: uuid.NewString()}
		e.Message = chat.Message{
			ID: chat.NewID(), CreatedAt: time.Now().UTC(), Type: chat.Text, Data: []byte(`{"text":"a"}`), IsFromSupport: true,
		}
		if err := b.Publish(t.Context(), event.Derived(), e); err != nil {
			t.Fatal(err)
		}
		return e.Message.ID
	}
	r := newReplies(b)
	expect := func(want bool, id string, since time.Time) {
		t.Helper()
		got, err := r.Published(t.Context(), appID, visitorID, id, since)
		if err != nil || got != want {
			t.Errorf("published: got %v and %v, want %v", got, err, want)
		}
	}
	first := publish()
	awaitMark(t, b)

	expect(false, chat.NewID(), began)
	second := publish()
	third := publish()
	expect(true, third, began)
	expect(true, first, began)
	expect(true, second, began.Add(time.Nanosecond))
	read, _ := r.known.Get(subject.Reply(appID, visitorID))
	if want := []string{first, second, third}; !slices.Equal(read.ids, want) {
		t.Errorf("got the replies %v, want each once: %v", read.ids, want)
	}

	purge(t, b)
	expect(true, third, began) // which is not read again
	expect(false, third, began.Add(-time.Hour))
}

// awaitMark returns when the bus knows where the stream of replies is: a consumer has received one.
func awaitMark(t *testing.T, b *bus.Bus) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	handle := func(context.Context, bus.Delivery) error { return nil }
	go func() {
		ended <- b.Consume(ctx, bus.Consumer{Stream: subject.Replies, Durable: "tester", Handle: handle})
	}()
	timetest.Until(t, "the stream of replies has a mark", func() bool {
		_, known := b.Mark(subject.Replies)
		return known
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// purge removes all replies.
func purge(t *testing.T, b *bus.Bus) {
	t.Helper()
	stream, err := b.Stream(t.Context(), subject.Replies)
	if err == nil {
		err = stream.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}
