package chattest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// IdleClose is the idle timeout of chats in the tests of the table.
const IdleClose = 30 * 24 * time.Hour

// OpenIn creates a chat of the visitor in a state at now, and returns its id; for no chat, an unknown id.
// Chats are at the boundary of their state: the window of an active one ends at now, one whose window has
// passed becomes idle at now.
func OpenIn(t testing.TB, s store.Store, v chat.Visitor, channel chat.Channel, state string, now time.Time) (chatID string) {
	t.Helper()
	spoke := map[string]time.Time{
		Pending:      now.Add(-chat.Window),
		Active:       now.Add(-chat.Window),
		WindowPassed: now.Add(-IdleClose),
		Closed:       now.Add(-time.Minute),
		Idle:         now.Add(-IdleClose - time.Millisecond),
	}
	last, ok := spoke[state]
	if !ok {
		return uuid.NewString()
	}
	c, opened, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: channel, Now: last})
	if err != nil || !opened {
		t.Fatalf("opening a chat to be %s: got opened %v, %v", state, opened, err)
	}
	if state != Pending {
		hello := chat.Message{ID: uuid.NewString(), CreatedAt: last, Type: chat.Text, Data: json.RawMessage(`{"text":"hello"}`), NameOfSender: "Visitor"}
		if err := s.AppendMessage(t.Context(), c.ID, hello); err != nil {
			t.Fatal(err)
		}
	}
	if state == Closed {
		if _, err := s.ChangeChat(t.Context(), c.ID, store.ChatChange{ClosedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	return c.ID
}
