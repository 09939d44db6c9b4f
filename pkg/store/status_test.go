package store_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

// What the database makes of reports in any order, some of them twice, is what Join says, after each of them.
func TestStatusIsJoinedInAnyOrder(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	reports := []chat.MessageStatus{
		{ChatID: "c", AcceptedAt: at(1), StoredAt: at(2)},
		{DeliveredAt: at(3)}, {DeliveredAt: at(9)}, {ReadAt: at(4)}, {AcceptedAt: at(1)},
		{Failure: chat.Failure{At: at(5), Reason: "no such number å"}}, {Failure: chat.Failure{At: at(5), Reason: "busy, try later"}},
		{Failure: chat.Failure{At: at(6), Reason: "a"}},
	}
	for round := range 20 / scale {
		random := rand.New(rand.NewPCG(1, uint64(round)))
		order := slices.Concat(reports, reports[:random.IntN(len(reports))])
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		company, id := uuid.NewString(), uuid.NewString()
		var want chat.MessageStatus
		for _, r := range order {
			want = want.Join(r)
			got, err := s.JoinMessageStatus(t.Context(), company, id, r)
			if err != nil || got != want {
				t.Fatalf("round %d: got %+v and %v after %+v, want %+v", round, got, err, r, want)
			}
		}
		if got, err := s.MessageStatus(t.Context(), company, id); err != nil || got != want {
			t.Fatalf("round %d: got %+v and %v, want %+v", round, got, err, want)
		}
	}
}

func TestStatusIsTheCompanysOwn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	own, other, id := uuid.NewString(), uuid.NewString(), uuid.NewString()
	if _, err := s.JoinMessageStatus(t.Context(), own, id, chat.MessageStatus{AcceptedAt: at(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.MessageStatus(t.Context(), other, id); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("got %v, want NotFound for another company", err)
	}
	if _, err := s.JoinMessageStatus(t.Context(), other, id, chat.MessageStatus{ReadAt: at(2)}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.MessageStatus(t.Context(), own, id); err != nil || got.Status() != chat.StatusAccepted {
		t.Errorf("got %s and %v, want what the other company reports to change nothing", got.Status(), err)
	}
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	chatID := uuid.NewString()
	one, two, three := text(uuid.NewString(), at(1), true), text(uuid.NewString(), at(2), true), text(uuid.NewString(), at(3), true)
	wantUndelivered(t, s, chatID)
	for _, m := range []chat.Message{two, one, three} {
		if readAt, err := s.AwaitReceipts(t.Context(), chatID, m, m.ID == two.ID); err != nil || !readAt.IsZero() {
			t.Fatalf("got %v and %v, want nothing read", readAt, err)
		}
	}
	wantUndelivered(t, s, chatID, one.ID, three.ID)

	wantUnread(t, s, chatID, two, at(10), one.ID, two.ID)
	wantUnread(t, s, chatID, two, at(11), one.ID, two.ID) // until it is noted
	wantUnread(t, s, chatID, one, at(12), one.ID)         // reading is not taken back, but this was asked
	for id, read := range map[string]bool{one.ID: true, three.ID: false} {
		if err := s.NoteReceipt(t.Context(), chatID, id, read); err != nil {
			t.Fatal(err)
		}
	}
	wantUndelivered(t, s, chatID)
	wantUnread(t, s, chatID, three, at(13), two.ID, three.ID)

	// What is stored after it was read is read.
	late := text(uuid.NewString(), at(3).Add(-time.Millisecond), true)
	if readAt, err := s.AwaitReceipts(t.Context(), chatID, late, true); err != nil || !readAt.Equal(at(13)) {
		t.Errorf("got %v and %v, want %v", readAt, err, at(13))
	}
	next := text(uuid.NewString(), at(4), true)
	if readAt, err := s.AwaitReceipts(t.Context(), chatID, next, true); err != nil || !readAt.IsZero() {
		t.Errorf("got %v and %v, want what follows not read", readAt, err)
	}
}

func TestReceiptsOfNobody(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	chatID := uuid.NewString()
	if err := s.NoteReceipt(t.Context(), chatID, uuid.NewString(), true); err != nil {
		t.Errorf("got %v, want nothing done", err)
	}
	wantUnread(t, s, chatID, text(uuid.NewString(), at(1), true), at(2))
}

func wantUndelivered(t *testing.T, s *store.Store, chatID string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got, err := s.Undelivered(t.Context(), chatID); err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %v and %v, want %v undelivered", got, err, want)
	}
}

func wantUnread(t *testing.T, s *store.Store, chatID string, upTo chat.Message, when time.Time, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got, err := s.ReadUpTo(t.Context(), chatID, upTo, when); err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %v and %v, want %v unread", got, err, want)
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	hello := greetings("hello")
	c, _, err := s.OpenChat(t.Context(), newVisitor(t, s), store.NewChat{Channel: chat.ChannelWidget, Now: at(0), Greetings: hello})
	if err != nil {
		t.Fatal(err)
	}
	m := text("an.id$", at(1), true)
	if err := s.AppendMessage(t.Context(), c.ID, m); err != nil {
		t.Fatal(err)
	}
	for _, want := range []chat.Message{m, hello[0]} {
		if got, err := s.Message(t.Context(), c.ID, want.ID); err != nil || string(got.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
			t.Errorf("got %+v and %v, want %+v", got, err, want)
		}
	}
	for _, id := range []string{"", "unknown", "\xff", uuid.NewString()} {
		if _, err := s.Message(t.Context(), c.ID, id); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("got %v for %q, want NotFound", err, id)
		}
	}
	if _, err := s.Message(t.Context(), openChat(t, s).ID, m.ID); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("got %v for a message of another chat, want NotFound", err)
	}
}
