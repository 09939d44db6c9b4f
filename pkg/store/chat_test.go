package store_test

import (
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

// text is a message with an id of its own.
func text(words string, when time.Time, fromSupport bool) chat.Message {
	return chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: when, Type: chat.Text, Data: json.RawMessage(`{"text":` + strconv.Quote(words) + `}`),
		NameOfSender: "Someone", IsFromSupport: fromSupport,
	}
}

func greetings(words ...string) (all []chat.Message) {
	for n, w := range words {
		all = append(all, text(w, at(n), true))
	}
	return all
}

func wantTexts(t *testing.T, history []chat.Message, want ...string) {
	t.Helper()
	if len(history) != len(want) {
		t.Fatalf("got %d messages, want %d", len(history), len(want))
	}
	for n, m := range history {
		if got := string(m.Data); got != `{"text":`+strconv.Quote(want[n])+`}` {
			t.Fatalf("message %d: got %s, want the text %q", n, got, want[n])
		}
	}
}

func newVisitor(t testing.TB, s *store.Store) chat.Visitor {
	t.Helper()
	v, err := s.SaveVisitor(t.Context(), chat.Visitor{ID: uuid.NewString(), CompanyID: "c", AppID: "a"})
	if err != nil {
		t.Fatalf("saving a visitor: %v", err)
	}
	return v
}

func openChat(t testing.TB, s *store.Store) chat.Chat {
	t.Helper()
	c, _, err := s.OpenChat(t.Context(), newVisitor(t, s), store.NewChat{Channel: chat.ChannelWidget, Now: at(0)})
	if err != nil {
		t.Fatalf("opening a chat: %v", err)
	}
	return c
}

func TestOpenChatOpensOnceAndAgainAfterClosing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	stale := newVisitor(t, s) // it keeps saying that there was no chat
	var seen []string
	for round := range 3 {
		now := at(round * 1000)
		c, opened, err := s.OpenChat(t.Context(), stale, store.NewChat{Channel: chat.ChannelWidget, Now: now, Greetings: greetings("hi")})
		want := chat.Chat{ID: c.ID, CompanyID: "c", AppID: "a", ChatUserID: stale.ID, Channel: chat.ChannelWidget, CreatedAt: now, WindowStartedAt: now}
		if err != nil || !opened || c != want {
			t.Fatalf("round %d: got %+v, %v, %v, want %+v opened", round, c, opened, err, want)
		}
		fresh, err := s.Visitor(t.Context(), stale.ID)
		if err != nil || fresh.ChatNumber != round+1 {
			t.Fatalf("round %d: got chat number %d, %v, want %d", round, fresh.ChatNumber, err, round+1)
		}
		for _, v := range []chat.Visitor{stale, fresh} {
			same, opened, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(1), Greetings: greetings("again")})
			if err != nil || opened || same != c {
				t.Fatalf("round %d: got %+v, %v, %v, want the open chat", round, same, opened, err)
			}
		}
		if err := s.CloseChat(t.Context(), c.ID, now.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		history, err := s.History(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantTexts(t, history, "hi")
		seen = append(seen, c.ID)
	}
	if seen[0] == seen[1] || seen[1] == seen[2] {
		t.Fatalf("got chats %v, want three different ones", seen)
	}
}

func TestOpenChatWithoutVisitor(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if _, _, err := s.OpenChat(t.Context(), chat.Visitor{ID: "no UUID"}, store.NewChat{Now: at(0)}); !apperr.Is(err, apperr.Invalid) {
		t.Fatalf("got %v, want Invalid", err)
	}
}

func TestCloseChatOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if err := s.CloseChat(t.Context(), uuid.NewString(), at(0)); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("closing an unknown chat: got %v, want NotFound", err)
	}
	c := openChat(t, s)
	for _, when := range []time.Time{at(5), at(9)} {
		if err := s.CloseChat(t.Context(), c.ID, when); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Chat(t.Context(), c.ID)
	if err != nil || !got.ClosedAt.Equal(at(5)) || got.Status(at(4)) != chat.Closed {
		t.Fatalf("got %+v, %v, want it closed at the first closing", got, err)
	}
}

// TestOpeningAtOnceAfterClosing has many callers with a stale visitor find the chat closed.
func TestOpeningAtOnceAfterClosing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	v := newVisitor(t, s)
	first, _, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(0)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CloseChat(t.Context(), first.ID, at(1)); err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 20)
	var all sync.WaitGroup
	for n := range ids {
		all.Go(func() {
			c, _, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(n)})
			if err != nil {
				t.Errorf("opening: %v", err)
			}
			ids[n] = c.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] || id == first.ID {
			t.Fatalf("got chat %s, want %s for all, which is not the closed one", id, ids[0])
		}
	}
}

func TestVisitorMessagesMoveTheWindow(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	c := openChat(t, s)
	steps := []struct {
		message chat.Message
		want    time.Time // of the visitor's last message
		status  chat.Status
	}{
		{text("from support", at(500), true), time.Time{}, chat.Pending},
		{text("hello", at(1000), false), at(1000), chat.Active},
		{text("late in arriving", at(700), false), at(1000), chat.Active},
		{text("from support", at(5000), true), at(1000), chat.Active},
		{text("more", at(2000), false), at(2000), chat.Active},
	}
	for n, step := range steps {
		if err := s.AppendMessage(t.Context(), c.ID, step.message); err != nil {
			t.Fatal(err)
		}
		got, err := s.Chat(t.Context(), c.ID)
		if err != nil || !got.VisitorWroteAt.Equal(step.want) || got.Status(at(9000)) != step.status {
			t.Fatalf("step %d: got %+v, %v, want the visitor's last message at %v", n, got, err, step.want)
		}
		if window := maxTime(step.want, c.CreatedAt); !got.WindowStartedAt.Equal(window) {
			t.Fatalf("step %d: got a window from %v, want %v", n, got.WindowStartedAt, window)
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// day is how long a visitor may be silent in these tests.
const day = 24 * time.Hour

func closingAfterADay(c *store.Config) { c.IdleClose = day }

// A chat that nobody has closed is closed a day after the visitor's last word, to every replica at the same instant; support's
// words do not keep it open.
func TestIdleChatIsFollowedByANewOne(t *testing.T) {
	t.Parallel()
	uri, name := storetest.Start(t), storetest.DatabaseName()
	s, replica := storetest.OpenAt(t, uri, name, closingAfterADay), storetest.OpenAt(t, uri, name, closingAfterADay)
	v := newVisitor(t, s)
	open := func(s *store.Store, now time.Time) (chat.Chat, bool) {
		t.Helper()
		c, opened, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return c, opened
	}
	first, _ := open(s, at(0))
	appendAll(t, s, first.ID, text("hello", at(1000), false), text("from support", at(5000), true))
	edge := at(1000).Add(day)
	for _, s := range []*store.Store{s, replica} {
		if c, opened := open(s, edge); opened || c.ID != first.ID || !c.IdleClosesAt.Equal(edge) {
			t.Fatalf("at the edge: got %+v, opened %v, want the first chat", c, opened)
		}
		if c, err := s.CurrentChat(t.Context(), v, edge); err != nil || c.ID != first.ID {
			t.Fatalf("at the edge: got %+v, %v, want the first chat", c, err)
		}
		if _, err := s.CurrentChat(t.Context(), v, edge.Add(time.Millisecond)); !apperr.Is(err, apperr.NotFound) {
			t.Fatalf("behind the edge: got %v, want NotFound", err)
		}
	}
	next, opened := open(replica, edge.Add(time.Millisecond))
	if !opened || next.ID == first.ID {
		t.Fatalf("behind the edge: got %+v, opened %v, want a new chat", next, opened)
	}
	// A word of before that arrives only now does not open the first again, nor does a clock that is behind.
	appendAll(t, s, first.ID, text("late", edge, false))
	for _, now := range []time.Time{edge.Add(-time.Second), edge.Add(time.Second)} {
		if c, opened := open(s, now); opened || c.ID != next.ID {
			t.Fatalf("got %+v, opened %v, want the second chat to be the open one", c, opened)
		}
	}
	if c, err := s.Chat(t.Context(), first.ID); err != nil || !c.ClosedAt.Equal(edge) || c.Status(edge) != chat.Closed {
		t.Fatalf("got %+v, %v, want the first chat closed at the edge", c, err)
	}
}

// Until another chat has followed it, a word that was accepted in time keeps a chat open, however late it is stored.
func TestLateWordKeepsAnIdleChatOpen(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, closingAfterADay)
	c := openChat(t, s)
	behind := at(0).Add(day + time.Hour)
	if got, err := s.Chat(t.Context(), c.ID); err != nil || got.Open(behind) {
		t.Fatalf("got %+v, %v, want an idle chat", got, err)
	}
	appendAll(t, s, c.ID, text("late", at(0).Add(day), false))
	if got, err := s.Chat(t.Context(), c.ID); err != nil || got.Status(behind) != chat.Active {
		t.Fatalf("got %+v, %v, want an active chat", got, err)
	}
}

func TestNeverIdle(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if c := openChat(t, s); !c.Open(at(0).Add(1000 * day)) {
		t.Fatalf("got %+v, want a chat that stays open", c)
	}
}

func TestOpeningAtOnceAfterIdling(t *testing.T) {
	t.Parallel()
	uri, name := storetest.Start(t), storetest.DatabaseName()
	replicas := []*store.Store{storetest.OpenAt(t, uri, name, closingAfterADay), storetest.OpenAt(t, uri, name, closingAfterADay)}
	v := newVisitor(t, replicas[0])
	first, _, err := replicas[0].OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(0)})
	if err != nil {
		t.Fatal(err)
	}
	ids, news := make([]string, 20), make([]bool, 20)
	var all sync.WaitGroup
	for n := range ids {
		all.Go(func() {
			c, opened, err := replicas[n%2].OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(n + 1).Add(day)})
			if err != nil {
				t.Errorf("opening: %v", err)
			}
			ids[n], news[n] = c.ID, opened
		})
	}
	all.Wait()
	opened := 0
	for n, id := range ids {
		if id != ids[0] || id == first.ID {
			t.Errorf("got chat %s, want %s for all, which is not the idle one", id, ids[0])
		}
		if news[n] {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("got %d openings, want 1", opened)
	}
}

func appendAll(t testing.TB, s *store.Store, chatID string, messages ...chat.Message) {
	t.Helper()
	for _, m := range messages {
		if err := s.AppendMessage(t.Context(), chatID, m); err != nil {
			t.Fatal(err)
		}
	}
}
