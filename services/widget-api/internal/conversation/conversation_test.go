package conversation_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const visitorID = "01999999-0000-7000-8000-000000000001"

var claims = credential.VisitorClaims{ChatUserID: visitorID, AppID: "app", CompanyID: "company"}

var payer = event.ForVisitor("company", "app", visitorID, "192.0.2.1")

var away = apperr.Unreachable("test", errors.New("gone"))

// publishing guards the published events of all fakes: surroundings are copied.
var publishing sync.Mutex

// surroundings fakes the dependencies of the service, with configurable faults.
type surroundings struct {
	published []event.Event
	appended  []chat.Message
	publish   error

	undelivered, unread []string
	readUpTo            string
	cursor              chat.ReadCursor
	counted             int // the count that the store returns
	signals             []rpc.Announcement

	append error

	identity chat.MessageIdentity
	opened   int // calls of OpenChat
	last     event.Reply
	lastAt   time.Time
	lastErr  error
	looks    int // reads of the history
	recorder func(look int) []chat.Message
}

func (*surroundings) FindWidget(_ context.Context, id string) (chat.Application, error) {
	return chat.Application{ID: id}, nil
}

func (*surroundings) Visitor(_ context.Context, id string) (chat.Visitor, error) {
	return chat.Visitor{ID: id, AppID: "app", CompanyID: "company"}, nil
}

func (*surroundings) Chat(context.Context, string) (chat.Chat, error) {
	return chat.Chat{ID: "chat"}, nil
}

func (*surroundings) Chats(context.Context, store.ChatFilter, store.Page) ([]chat.Chat, error) {
	return nil, nil
}

func (*surroundings) ChangeChat(context.Context, string, store.ChatChange) (chat.Chat, error) {
	return chat.Chat{}, nil
}

func (s *surroundings) OpenChat(context.Context, chat.Visitor, store.NewChat) (chat.Chat, bool, error) {
	s.opened++
	return chat.Chat{ID: "chat"}, false, nil
}

func (s *surroundings) AppendMessage(_ context.Context, _ string, m chat.Message) error {
	s.appended = append(s.appended, m)
	return s.append
}

func (s *surroundings) ChatReceipts(context.Context, string) (store.ChatReceipts, error) {
	return store.ChatReceipts{ReadUpTo: s.cursor, Undelivered: s.undelivered}, nil
}

func (s *surroundings) CountUnread(context.Context, string, bool, chat.ReadCursor, int) (int, error) {
	return s.counted, nil
}

func (s *surroundings) Signal(e rpc.Announcement) error {
	s.signals = append(s.signals, e)
	return nil
}

func (s *surroundings) ReadUpTo(_ context.Context, _ string, m chat.Message, _ time.Time) ([]string, error) {
	s.readUpTo = m.ID
	return s.unread, nil
}

func (s *surroundings) History(_ context.Context, _ string, q store.HistoryQuery) ([]chat.Message, bool, error) {
	s.looks++
	if s.recorder == nil {
		return nil, false, nil
	}
	all := s.recorder(s.looks)
	if q.Before != "" || q.Limit == 0 || len(all) <= q.Limit {
		return all, false, nil
	}
	return all[len(all)-q.Limit:], true, nil
}

func (s *surroundings) FindMessage(_ context.Context, id string) (string, chat.Message, error) {
	history, _, err := s.History(context.Background(), "", store.HistoryQuery{})
	if err != nil {
		return "", chat.Message{}, err
	}
	for _, m := range slices.Concat(s.appended, history) {
		if m.ID == id {
			return "chat", m, nil
		}
	}
	return "", chat.Message{}, apperr.MessageNotFound.New()
}

func (s *surroundings) LastReply(context.Context, string, string) (event.Reply, time.Time, error) {
	return s.last, s.lastAt, s.lastErr
}

func (s *surroundings) service(log *slog.Logger) *conversation.Service {
	return conversation.New(conversation.Config{
		Applications: s, Directory: s, Chats: s, Receipts: s, Unread: s, Signals: s, Replies: s, Publisher: s, Logger: log, Now: time.Now,
	})
}

func (*surroundings) Charge(_ context.Context, a event.Account, _ int) (event.Account, error) {
	return a, nil
}

func (s *surroundings) Publish(_ context.Context, _ event.Account, e event.Event) error {
	publishing.Lock() // reports are published concurrently
	defer publishing.Unlock()
	s.published = append(s.published, e)
	return s.publish
}

func (s *surroundings) write(t *testing.T, log *slog.Logger) (chat.Message, error) {
	t.Helper()
	return s.service(log).Write(t.Context(), claims, payer, conversation.Draft{Type: chat.Text, Data: []byte(`{"text":"my address"}`)}, s.identity)
}

// A retry publishes the same message, also once the history has it: the recorder may have stored it from an event that
// was lost.
func TestARetryWritesTheSameMessage(t *testing.T) {
	t.Parallel()
	identity := chat.MessageIdentity{
		ID: "0198b1c6-4c40-7b53-9d1f-6a0f3f5a9e21", At: time.Now().Add(-time.Hour).UTC(), Again: true,
	}
	s := &surroundings{identity: identity}
	for n := range 2 {
		m, err := s.write(t, slog.New(slog.DiscardHandler))
		if err != nil || m.ID != identity.ID || !m.CreatedAt.Equal(identity.At) {
			t.Errorf("got %+v, %v, want the message of the identity", m, err)
		}
		if len(s.published) != n+1 || s.published[n].EventID() != identity.ID {
			t.Errorf("got %d events, want %d of the message", len(s.published), n+1)
		}
		if s.opened != 1 {
			t.Errorf("got a chat opened %d times, want once", s.opened)
		}
	}
}

// A message in the stream is accepted even if appending to the history fails: the recorder appends it.
func TestAcceptedEvenIfTheHistoryFails(t *testing.T) {
	t.Parallel()
	s, log := &surroundings{append: away}, new(bytes.Buffer)
	m, err := s.write(t, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil || len(s.published) != 1 || s.published[0].EventID() != m.ID {
		t.Errorf("got %v and %d events, want the message accepted", err, len(s.published))
	}
	if !strings.Contains(log.String(), m.ID) || strings.Contains(log.String(), "my address") {
		t.Errorf("got the log %q, want a line with the id and without the text", log)
	}
}

// A message that was not published must not be in the history.
func TestNotInTheHistoryUnlessPublished(t *testing.T) {
	t.Parallel()
	s := &surroundings{publish: away}
	if _, err := s.write(t, slog.New(slog.DiscardHandler)); !apperr.Is(err, apperr.Unavailable) || len(s.appended) > 0 {
		t.Errorf("got %v and %d messages in the history, want Unavailable and none", err, len(s.appended))
	}
}

func (s *surroundings) history(t *testing.T, p conversation.PageQuery) (got []chat.Message, err error) {
	t.Helper()
	err = s.service(slog.New(slog.DiscardHandler)).History(t.Context(), claims, p, func(a conversation.Answer) error {
		messages := a.Messages
		got = messages
		return nil
	})
	return got, err
}

// The history waits for the recorder, so that it includes a reply that the socket has just missed.
func TestHistoryWaitsForTheRecorder(t *testing.T) {
	t.Parallel()
	reply := event.Reply{ChatID: "chat", Message: chat.Message{ID: "reply"}}
	late := func(look int) []chat.Message {
		if look < 4 {
			return nil
		}
		return []chat.Message{reply.Message}
	}
	never := func(int) []chat.Message { return nil }
	once := func(n int) bool { return n == 1 }
	for name, test := range map[string]struct {
		surroundings
		age     time.Duration
		looks   func(int) bool
		replied bool
	}{
		"the recorder is late":         {surroundings{last: reply, recorder: late}, 0, func(n int) bool { return n == 4 }, true},
		"the recorder is down":         {surroundings{last: reply, recorder: never}, 0, func(n int) bool { return n > 1 }, false},
		"the reply is old":             {surroundings{last: reply, recorder: never}, time.Minute, once, false},
		"the reply is to another chat": {surroundings{last: event.Reply{ChatID: "closed"}, recorder: never}, 0, once, false},
		"the stream cannot be read":    {surroundings{lastErr: away, recorder: never}, 0, once, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &test.surroundings
				s.lastAt = time.Now().Add(-test.age)
				got, err := s.history(t, conversation.PageQuery{})
				if err != nil || (len(got) == 1) != test.replied || !test.looks(s.looks) {
					t.Errorf("got %v, %v after %d looks, want the reply: %v", got, err, s.looks, test.replied)
				}
			})
		})
	}
}

// The last page waits for a reply that belongs to it; earlier pages do not wait.
func TestPagesWaitForTheRecorder(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Date(2026, 11, 21, 12, 0, seconds, 0, time.UTC) }
	reply := event.Reply{ChatID: "chat", Message: chat.Message{ID: "reply", CreatedAt: at(1)}}
	later := []chat.Message{{ID: "later", CreatedAt: at(2)}, {ID: "last", CreatedAt: at(3)}}
	for name, test := range map[string]struct {
		page     conversation.PageQuery
		recorder func(look int) []chat.Message
		looks    int
	}{
		"the reply is the page's first": {conversation.PageQuery{Limit: 3}, func(look int) []chat.Message {
			if look < 3 {
				return later
			}
			return append([]chat.Message{reply.Message}, later...)
		}, 3},
		"the page is full of later ones":  {conversation.PageQuery{Limit: 1}, func(int) []chat.Message { return later }, 1},
		"the page is not the last of all": {conversation.PageQuery{Limit: 3, Before: "later"}, func(int) []chat.Message { return nil }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &surroundings{last: reply, lastAt: time.Now(), recorder: test.recorder}
				if _, err := s.history(t, test.page); err != nil || s.looks != test.looks {
					t.Errorf("got %v after %d looks, want %d", err, s.looks, test.looks)
				}
			})
		})
	}
}
