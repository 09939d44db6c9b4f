package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

// Unread messages are counted in the page if that reaches back to the cursor, and by the store otherwise.
func TestHistoryCountsUnread(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return time.Date(2026, 3, 1, 12, 0, n, 0, time.UTC) }
	message := func(n int) chat.Message {
		return chat.Message{ID: fmt.Sprint("m", n), CreatedAt: at(n), Type: chat.Text, Data: []byte(`{}`), IsFromSupport: n%2 == 0}
	}
	all := []chat.Message{message(1), message(2), message(3), message(4), message(6)}
	for _, test := range []struct {
		name   string
		cursor chat.ReadCursor
		page   conversation.PageQuery
		want   int
		absent bool
	}{
		{name: "nothing read", want: 3},
		{name: "read up to the second", cursor: chat.ReadCursor{At: at(2), MessageID: "m2"}, want: 2},
		{name: "all read", cursor: chat.ReadCursor{At: at(6), MessageID: "m6"}},
		{name: "the cursor is before the page", cursor: chat.ReadCursor{At: at(2), MessageID: "m2"}, page: conversation.PageQuery{Limit: 2}, want: 77},
		{name: "an earlier page", page: conversation.PageQuery{Before: "m3"}, absent: true},
	} {
		s := &surroundings{cursor: test.cursor, counted: 77, history: all}
		var got *conversation.Reading
		err := s.service(slog.New(slog.DiscardHandler)).History(t.Context(), claims, test.page, func(a conversation.Answer) error {
			got = a.Reading
			return nil
		})
		switch {
		case err != nil:
			t.Errorf("%s: got %v", test.name, err)
		case got == nil != test.absent:
			t.Errorf("%s: got %+v, want it absent %v", test.name, got, test.absent)
		case got != nil && (got.Unread != test.want || got.ReadUpTo != test.cursor.MessageID):
			t.Errorf("%s: got %+v, want %d unread", test.name, got, test.want)
		}
	}
}

// A gateway moves the cursor as POST /message/:id/read does; both signal connected browsers.
func TestSocketReading(t *testing.T) {
	t.Parallel()
	m := chat.Message{ID: "m", CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Type: chat.Text, Data: []byte(`{}`), IsFromSupport: true}
	s := &surroundings{counted: 5, history: []chat.Message{m}}
	service := s.service(slog.New(slog.DiscardHandler))
	reading, err := service.SocketReading(t.Context(), "company", "app", visitorID, "")
	if err != nil || reading.Unread != 5 || s.readUpTo != "" || len(s.signals) != 0 {
		t.Errorf("without a message: got %+v, %v and %v, want nothing moved", reading, err, s.signals)
	}
	if _, err = service.SocketReading(t.Context(), "company", "app", visitorID, "m"); err != nil || s.readUpTo != "m" || len(s.signals) != 1 {
		t.Fatalf("got %v, the cursor at %q and %v, want it moved and signalled", err, s.readUpTo, s.signals)
	}
	if e, ok := s.signals[0].(event.ReadCursorMoved); !ok || e.Side != subject.SideVisitor || e.MessageID != "m" || !e.UpTo.Equal(m.CreatedAt) {
		t.Errorf("got %+v, want the visitor's cursor", s.signals[0])
	}
	if _, err := service.SocketReading(t.Context(), "company", "app", visitorID, "unknown"); err == nil {
		t.Error("an unknown message: got no error")
	}
	if _, err := service.SocketReading(t.Context(), "another", "app", visitorID, "m"); err == nil {
		t.Error("another company's visitor: got no error")
	}
}

// Presence is read once per interval, also while the store fails.
func TestAgents(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	if online, known := (*conversation.Agents)(nil).Online(t.Context(), "c"); online || known {
		t.Error("without a store: got something known")
	}
	kept := &countingPresence{Store: presence.NewMemory(clock)}
	agents := conversation.NewAgents(kept, clock)
	state := func() (online, known bool) { return agents.Online(t.Context(), "c") }
	if online, known := state(); online || !known {
		t.Errorf("got %v and %v, want no agent online", online, known)
	}
	if err := kept.SetOnline(t.Context(), "panel", presence.Agents("c")); err != nil {
		t.Fatal(err)
	}
	if online, _ := state(); online || kept.asked != 1 {
		t.Errorf("got %v after %d looks, want the answer kept for a while", online, kept.asked)
	}
	now = now.Add(5 * time.Second)
	if online, known := state(); !online || !known {
		t.Errorf("got %v and %v, want an agent online", online, known)
	}
	now, kept.err = now.Add(5*time.Second), errors.New("away")
	for range 3 {
		if online, known := state(); online || known || kept.asked != 3 {
			t.Errorf("while the store is down: got %v and %v after %d looks, want nothing known after 3", online, known, kept.asked)
		}
	}
}

type countingPresence struct {
	presence.Store
	asked int
	err   error
}

func (c *countingPresence) States(ctx context.Context, keys ...string) ([]presence.State, error) {
	c.asked++
	if c.err != nil {
		return nil, c.err
	}
	return c.Store.States(ctx, keys...)
}
