package conversation_test

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

func support(id string) chat.Message {
	return chat.Message{ID: id, Type: chat.Text, Data: []byte(`{}`), IsFromSupport: true}
}

// reported returns the published reports, sorted.
func (s *surroundings) reported(t *testing.T) (all []string) {
	t.Helper()
	for _, e := range s.published {
		r, ok := e.(event.MessageStatusChanged)
		if !ok || r.ChatID != "chat" || !r.At.Equal(time.Now()) {
			t.Fatalf("got %+v, want a report of now in the chat", e)
		}
		all = append(all, r.MessageID+" "+r.Status)
	}
	slices.Sort(all)
	return all
}

// The history reports the deliveries of its messages that wait for a receipt.
func TestAHistoryIsADelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &surroundings{undelivered: []string{"a", "b", "foreignOrigin"}}
		s.history = []chat.Message{support("a"), support("b"), support("bot's")}
		if _, err := s.page(t, conversation.PageQuery{}); err != nil {
			t.Fatal(err)
		}
		if got := s.reported(t); !slices.Equal(got, []string{"a delivered", "b delivered"}) {
			t.Errorf("got %v, want a and b delivered", got)
		}
	})
}

// The history is answered even if publishing the reports fails.
func TestAHistoryDoesNotDependOnItsReports(t *testing.T) {
	t.Parallel()
	s := &surroundings{undelivered: []string{"a"}, publish: away}
	s.history = []chat.Message{support("a")}
	if got, err := s.page(t, conversation.PageQuery{}); err != nil || len(got) != 1 {
		t.Errorf("got %v and %v, want the history", got, err)
	}
}

func TestReadReportsPendingReceipts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &surroundings{unread: []string{"a", "b"}}
		s.history = []chat.Message{support("a"), support("b")}
		if err := s.service(slog.New(slog.DiscardHandler)).MarkRead(t.Context(), claims, "b"); err != nil || s.readUpTo != "b" {
			t.Fatalf("got %v and up to %q, want up to b", err, s.readUpTo)
		}
		if got := s.reported(t); !slices.Equal(got, []string{"a read", "b read"}) {
			t.Errorf("got %v, want a and b read", got)
		}
	})
	s := &surroundings{unread: []string{"a"}, publish: away, history: []chat.Message{support("a")}}
	if err := s.service(slog.New(slog.DiscardHandler)).MarkRead(t.Context(), claims, "a"); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("got %v, want Unavailable if the report is not stored", err)
	}
}

// A message just received over the socket can be read before it is recorded.
func TestReadOfAMessageThatIsNotRecordedYet(t *testing.T) {
	t.Parallel()
	at := time.Now()
	reply := func(chatID, id string) event.Reply {
		m := support(id)
		m.CreatedAt = at
		return event.Reply{ChatID: chatID, Message: m}
	}
	id, newer := uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String()
	before := []event.Reply{reply("chat", id), reply("chat", newer)}
	for name, tt := range map[string]struct {
		surroundings
		found bool
	}{
		"the last reply":      {surroundings{replies: []event.Reply{reply("chat", id)}}, true},
		"one before the last": {surroundings{replies: before}, true},
		"another chat's":      {surroundings{replies: []event.Reply{reply("other", id)}}, false},
		"unknown":             {surroundings{replies: []event.Reply{reply("chat", newer)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.service(slog.New(slog.DiscardHandler)).MarkRead(t.Context(), claims, id)
			if tt.found != (err == nil) || !tt.found && !apperr.Is(err, apperr.NotFound) {
				t.Errorf("got %v, want found: %v", err, tt.found)
			}
		})
	}
	s := surroundings{noStream: away}
	err := s.service(slog.New(slog.DiscardHandler)).MarkRead(t.Context(), claims, id)
	if !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("the stream cannot be read: got %v, want Unavailable", err)
	}
}
