package conversation_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
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
	history  []chat.Message
	replies  []event.Reply // in the stream, each stored when its message was created
	noStream error         // why the stream cannot be read
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
	if q.Before != "" || q.Limit == 0 || len(s.history) <= q.Limit {
		return slices.Clone(s.history), false, nil
	}
	return slices.Clone(s.history[len(s.history)-q.Limit:]), true, nil
}

func (s *surroundings) FindMessage(_ context.Context, id string) (string, chat.Message, error) {
	for _, m := range slices.Concat(s.appended, s.history) {
		if m.ID == id {
			return "chat", m, nil
		}
	}
	return "", chat.Message{}, apperr.MessageNotFound.New()
}

func (s *surroundings) LastReply(context.Context, string, string) (event.Reply, time.Time, error) {
	if s.noStream != nil || len(s.replies) == 0 {
		return event.Reply{}, time.Time{}, cmp.Or(s.noStream, error(apperr.MessageNotFound.New()))
	}
	last := s.replies[len(s.replies)-1]
	return last, last.Message.CreatedAt, nil
}

func (s *surroundings) RepliesSince(
	_ context.Context,
	_, _ string,
	since time.Time,
) iter.Seq2[event.Reply, error] {
	return func(yield func(event.Reply, error) bool) {
		if s.noStream != nil {
			yield(event.Reply{}, s.noStream)
			return
		}
		for _, r := range s.replies {
			if !r.Message.CreatedAt.Before(since) && !yield(r, nil) {
				return
			}
		}
	}
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

func (s *surroundings) page(t *testing.T, p conversation.PageQuery) (got []chat.Message, err error) {
	t.Helper()
	err = s.service(slog.New(slog.DiscardHandler)).History(t.Context(), claims, p, func(a conversation.Answer) error {
		messages := a.Messages
		got = messages
		return nil
	})
	return got, err
}

// The last page has the replies that the recorder has not stored yet, in their places, within the limits of the page.
func TestHistoryHasWhatTheRecorderLacks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	said := func(id string, second int) chat.Message {
		return chat.Message{ID: id, CreatedAt: now.Add(time.Duration(second-60) * time.Second), IsFromSupport: true}
	}
	streamed := func(messages ...chat.Message) (replies []event.Reply) {
		for _, m := range messages {
			m.IsFromSupport = false // a processing layer need not set it
			replies = append(replies, event.Reply{ChatID: "chat", Message: m})
		}
		return replies
	}
	a, b, c, d := said("a", 10), said("b", 20), said("c", 30), said("d", 40)
	fresh, fresher := said("fresh", 58), said("fresher", 59)
	question := chat.Message{ID: "question", CreatedAt: said("", 35).CreatedAt}
	other := event.Reply{ChatID: "closed", Message: fresher}
	type messages = []chat.Message
	for name, test := range map[string]struct {
		stored   messages
		streamed []event.Reply
		limit    int
		before   string
		want     string
	}{
		"all are stored":           {stored: messages{a, b}, streamed: streamed(a, b), want: "a b"},
		"the first is missing":     {streamed: streamed(a), want: "a"},
		"some are missing":         {stored: messages{a, question}, streamed: streamed(a, b, d), want: "a b question d"},
		"stored in another order":  {stored: messages{fresher}, streamed: streamed(fresh, fresher), want: "fresh fresher"},
		"the recorder gave one up": {stored: messages{b}, streamed: streamed(a, b), want: "b"},
		"the page is full":         {stored: messages{a, b}, streamed: streamed(a, b, c, d), limit: 2, want: "c d more"},
		"only earlier ones":        {stored: messages{b, question}, streamed: streamed(a), limit: 1, want: "question more"},
		"an earlier page":          {stored: messages{a}, streamed: streamed(a, b), before: "b", want: "a"},
		"another chat's":           {stored: messages{a}, streamed: []event.Reply{other}, want: "a"},
		"another chat's is newer":  {stored: messages{a}, streamed: append(streamed(fresh), other), want: "a fresh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			s := &surroundings{history: test.stored, replies: test.streamed}
			service := s.service(slog.New(slog.DiscardHandler))
			query := conversation.PageQuery{Limit: test.limit, Before: test.before}
			err := service.History(t.Context(), claims, query, func(answer conversation.Answer) error {
				for _, m := range answer.Messages {
					got = append(got, m.ID)
					if m.IsFromSupport != (m.ID != question.ID) {
						t.Errorf("%s: got isFromSupport %v", m.ID, m.IsFromSupport)
					}
				}
				if answer.More {
					got = append(got, "more")
				}
				return nil
			})
			if all := strings.Join(got, " "); err != nil || all != test.want {
				t.Errorf("got %q, %v, want %q", all, err, test.want)
			}
		})
	}
	s := &surroundings{history: messages{a}, replies: streamed(b), noStream: away}
	if got, err := s.page(t, conversation.PageQuery{}); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("the stream cannot be read: got %v, %v, want Unavailable: the page may lack a reply", got, err)
	}
	if got, err := s.page(t, conversation.PageQuery{Before: "b"}); err != nil || len(got) != 1 {
		t.Errorf("an earlier page without the stream: got %v, %v, want it", got, err)
	}
}
