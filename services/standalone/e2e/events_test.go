package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	eventsv1 "github.com/parley-chat/parley/proto-events/gen/parley/events/v1"
	"github.com/parley-chat/parley/testkit/bustest"
)

// watch subscribes to chat.> with a plain NATS client.
func watch(t testing.TB, p place) *bustest.Collector {
	t.Helper()
	return bustest.Collect(t, p.NATSURL, "chat.>")
}

// nextEvent returns the next event of type T that want accepts, and checks every event that it skips.
func nextEvent[T proto.Message](t testing.TB, c *bustest.Collector, want func(T) bool) (T, *nats.Msg) {
	t.Helper()
	for {
		m := c.Next()
		if e, ok := readEvent(t, m).(T); ok && want(e) {
			return e, m
		}
	}
}

// readEvent checks an event's headers and parses it strictly with the generated types.
func readEvent(t testing.TB, m *nats.Msg) proto.Message {
	t.Helper()
	for prefix, signal := range map[string]proto.Message{"chat.typing.": new(eventsv1.Typing), "chat.read.": new(eventsv1.ReadCursorMoved)} {
		if strings.HasPrefix(m.Subject, prefix) { // not stored: no event, and without its headers
			if err := protojson.Unmarshal(m.Data, signal); err != nil {
				t.Errorf("%s: the contract does not know %s: %v", m.Subject, m.Data, err)
			}
			return signal
		}
	}
	checkCloudEvent(t, m)
	types := map[string]proto.Message{
		"chat.in.message.":            new(eventsv1.CompanyMessageAccepted),
		"chat.in.push.":               new(eventsv1.PushAccepted),
		"chat.in.visitor.registered.": new(eventsv1.VisitorRegistered),
		"chat.in.visitor.message.":    new(eventsv1.VisitorMessageAccepted),
		"chat.in.visitor.rated.":      new(eventsv1.ChatRated),
		"chat.reply.":                 new(eventsv1.Reply),
		"chat.part.":                  new(eventsv1.MessagePart),
		"chat.out.":                   new(eventsv1.OutboundMessage),
		"chat.status.":                new(eventsv1.MessageStatusChanged),
	}
	for prefix, e := range types {
		if !strings.HasPrefix(m.Subject, prefix) {
			continue
		}
		if got, want := m.Header.Get("ce-type"), string(e.ProtoReflect().Descriptor().FullName()); got != want {
			t.Errorf("%s: got ce-type %q, want %q", m.Subject, got, want)
		}
		if err := protojson.Unmarshal(m.Data, e); err != nil {
			t.Errorf("%s: the contract does not know %s: %v", m.Subject, m.Data, err)
		}
		return e
	}
	t.Errorf("an event on an unknown subject: %s", m.Subject)
	return nil
}

func checkCloudEvent(t testing.TB, m *nats.Msg) {
	t.Helper()
	if id := m.Header.Get("ce-id"); id == "" || id != m.Header.Get(nats.MsgIdHdr) {
		t.Errorf("%s: got ce-id %q and Nats-Msg-Id %q, want the same", m.Subject, id, m.Header.Get(nats.MsgIdHdr))
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", m.Header.Get("ce-time")); err != nil {
		t.Errorf("%s: ce-time: %v", m.Subject, err)
	}
	if got := m.Header.Get("ce-specversion"); got != "1.0" {
		t.Errorf("%s: got ce-specversion %q, want 1.0", m.Subject, got)
	}
	sources := []string{"/client-api", "/widget-api", "/processor", "/socket-gateway", "/parleyctl"}
	if got := m.Header.Get("ce-source"); !slices.Contains(sources, got) {
		t.Errorf("%s: got ce-source %q, want one of %v", m.Subject, got, sources)
	}
}
