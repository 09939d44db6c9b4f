package conversation_test

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
		s := &surroundings{undelivered: []string{"a", "b", "foreignOrigin"}, lastErr: away}
		s.recorder = func(int) []chat.Message { return []chat.Message{support("a"), support("b"), support("bot's")} }
		if _, err := s.history(t, conversation.PageQuery{}); err != nil {
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
	s := &surroundings{undelivered: []string{"a"}, lastErr: away, publish: away}
	s.recorder = func(int) []chat.Message { return []chat.Message{support("a")} }
	if got, err := s.history(t, conversation.PageQuery{}); err != nil || len(got) != 1 {
		t.Errorf("got %v and %v, want the history", got, err)
	}
}

func TestReadReportsPendingReceipts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &surroundings{unread: []string{"a", "b"}}
		s.recorder = func(int) []chat.Message { return []chat.Message{support("a"), support("b")} }
		if err := s.service(slog.New(slog.DiscardHandler)).MarkRead(t.Context(), claims, "b"); err != nil || s.readUpTo != "b" {
			t.Fatalf("got %v and up to %q, want up to b", err, s.readUpTo)
		}
		if got := s.reported(t); !slices.Equal(got, []string{"a read", "b read"}) {
			t.Errorf("got %v, want a and b read", got)
		}
	})
	s := &surroundings{unread: []string{"a"}, publish: away, recorder: func(int) []chat.Message { return []chat.Message{support("a")} }}
	if err := s.service(slog.New(slog.DiscardHandler)).MarkRead(t.Context(), claims, "a"); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("got %v, want Unavailable if the report is not stored", err)
	}
}

// A message just received over the socket can be read before it is recorded; an unknown one is refused at
// once or after a wait.
func TestReadOfAMessageThatIsNotRecordedYet(t *testing.T) {
	t.Parallel()
	const id = "last"
	for name, tt := range map[string]struct {
		last     event.Reply
		ago      time.Duration
		recorder func(int) []chat.Message
		looks    int // 0: any number
		found    bool
	}{
		"the last reply":                  {event.Reply{ChatID: "chat", Message: support(id)}, 0, nil, 1, true},
		"one before the last":             {event.Reply{ChatID: "chat", Message: support("newer")}, 0, func(look int) []chat.Message { return []chat.Message{support(id)}[:min(look/5, 1)] }, 5, true},
		"another chat's last":             {event.Reply{ChatID: "other", Message: support(id)}, 0, nil, 1, false},
		"the last of long ago":            {event.Reply{ChatID: "chat", Message: support("newer")}, time.Minute, nil, 1, false},
		"nothing, and the recorder works": {event.Reply{ChatID: "chat", Message: support("newer")}, 0, nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &surroundings{last: tt.last, lastAt: time.Now().Add(-tt.ago), recorder: tt.recorder}
				err := s.service(slog.New(slog.DiscardHandler)).MarkRead(t.Context(), claims, id)
				if tt.found != (err == nil) || !tt.found && !apperr.Is(err, apperr.NotFound) {
					t.Errorf("got %v, want found: %v", err, tt.found)
				}
				if tt.looks > 0 && s.looks != tt.looks {
					t.Errorf("got %d looks, want %d", s.looks, tt.looks)
				}
			})
		})
	}
}
