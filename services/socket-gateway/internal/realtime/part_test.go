package realtime

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
	"github.com/parley-chat/parley/testkit/bustest"
)

const written = "0198f3a0-7b1c-7e42-9d55-3c6a8f0b1e27"

func partAt(n int32, text string) event.MessagePart {
	return event.MessagePart{
		CompanyID: "company", AppID: "app", ChatUserID: "sara", ChatID: "chat", MessageID: written, N: n, Offset: n, Text: text, CreatedAt: time.Now(),
	}
}

func eventOf(p event.MessagePart) *socketio.Broadcast {
	b := describedAt(metadata.Metadata{Part: metadata.Part{MessageID: p.MessageID, N: p.N}})
	b.Data = encodePart(p)
	return b
}

// partRecorder records the parts that a namespace would deliver, each with the sockets that are left out.
type partRecorder struct {
	audience
	parts []string
}

func (p *partRecorder) EmitLocal(b *socketio.Broadcast) int {
	p.parts = append(p.parts, fmt.Sprint(metadata.Of(b).Part.N, b.Except))
	return 1
}

// A room takes each part once, and a socket that joined with more of the message is left out until the room is there.
func TestARoomTakesEachPartOnce(t *testing.T) {
	t.Parallel()
	p := &partRecorder{}
	r := newTestRooms(t, &p.audience)
	r.sockets = p
	r.open("room", "company", 0)
	arrive := func(n ...int32) {
		for _, n := range n {
			r.handleBroadcast(eventOf(partAt(n, "x")))
		}
	}
	arrive(0, 1, 1, 0, 2)
	r.markPartsReplayed("room", "late", metadata.Part{MessageID: written, N: 2}) // the room exists already
	r.markPartsReplayed("room", "ahead", metadata.Part{MessageID: written, N: 4})
	arrive(3, 4, 5)
	other := partAt(0, "another message")
	other.MessageID = uuid.NewString()
	r.handleBroadcast(eventOf(other))
	if want := []string{"0 []", "1 []", "2 []", "3 [ahead]", "4 [ahead]", "5 []", "0 []"}; !slices.Equal(p.parts, want) {
		t.Errorf("got %q, want %q", p.parts, want)
	}
}

// Sockets that join together ask together, and learn what is being written.
func TestJoiningSocketsAskTogether(t *testing.T) {
	t.Parallel()
	const sockets = 10_000
	url := bustest.Start(t).URL()
	b, observer := bustest.Open(t, url), bustest.JetStream(t, url).Conn()
	publish := func(p event.MessagePart) {
		if err := b.Publish(t.Context(), event.Derived(), p); err != nil {
			t.Fatal(err)
		}
	}
	for i, word := range []string{"a", "b", "c"} {
		publish(partAt(int32(i), word))
	}
	done := partAt(0, "x")
	done.ChatUserID, done.MessageID = "jo", uuid.NewString()
	publish(done)
	done.N, done.Offset, done.Text, done.Done = 1, 1, "", true
	publish(done)
	var asked atomic.Int64
	sub, err := observer.Subscribe("$JS.API.DIRECT.GET."+subject.Parts, func(*nats.Msg) { asked.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe()
	if err := observer.Flush(); err != nil {
		t.Fatal(err)
	}
	u := newUnfinishedMessages(b, time.Now)
	u.timeout = time.Minute // enough for a slow machine
	var joining sync.WaitGroup
	for i := range sockets {
		joining.Go(func() {
			visitor := "visitor" + fmt.Sprint(i)
			switch i {
			case 0:
				visitor = "sara"
			case 1:
				visitor = "jo"
			}
			whole, ok, err := u.of(t.Context(), "app", visitor)
			if err != nil || ok != (visitor == "sara") || ok && (whole.Text != "abc" || whole.N != 2 || whole.Offset != 0) {
				t.Errorf("%s: got %+v %v %v", visitor, whole, ok, err)
			}
		})
	}
	joining.Wait()
	if err := observer.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n == 0 || n > sockets/20 {
		t.Errorf("got %d requests for %d sockets, want a few", n, sockets)
	}
}

// What was written long ago is not being written.
func TestAnAbandonedMessageIsNotShown(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	if err := b.Publish(t.Context(), event.Derived(), partAt(0, strings.Repeat("x", 10))); err != nil {
		t.Fatal(err)
	}
	for ahead, want := range map[time.Duration]bool{0: true, partStale + time.Second: false} {
		u := newUnfinishedMessages(b, func() time.Time { return time.Now().Add(ahead) })
		if _, ok, err := u.of(t.Context(), "app", "sara"); ok != want || err != nil {
			t.Errorf("after %s got %v %v, want %v", ahead, ok, err, want)
		}
	}
}
