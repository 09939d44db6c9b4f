package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// opening is the result of OpenChat.
type opening struct {
	chat   chat.Chat
	opened bool
}

func openAs(t testing.TB, s store.Store, v chat.Visitor, n store.NewChat) opening {
	t.Helper()
	c, opened, err := s.OpenChat(t.Context(), v, n)
	must(t, err)
	return opening{c, opened}
}

func testChats(t *testing.T, open Opener) {
	const idle = 48 * time.Hour
	s, ctx := open(t, Options{IdleClose: idle}), t.Context()
	visitor := func(t testing.TB) chat.Visitor {
		return save(t, s, chat.Visitor{ID: newID(), CompanyID: newID(), AppID: newID()})
	}
	now := func(after time.Duration) store.NewChat {
		return store.NewChat{Channel: chat.ChannelWidget, Now: noon.Add(after)}
	}

	t.Run("open and close", func(t *testing.T) {
		v := visitor(t)
		_, err := s.Chat(ctx, newID())
		wantReason(t, "an unknown chat", err, apperr.NotFound, "CHAT_NOT_FOUND")
		wantCode(t, "closing an unknown chat", errorOf(s.ChangeChat(ctx, newID(), store.ChatChange{ClosedAt: noon})), apperr.NotFound)
		_, err = store.CurrentChat(ctx, s, v, noon)
		wantCode(t, "a visitor without a chat", err, apperr.NotFound)
		_, _, err = s.OpenChat(ctx, chat.Visitor{ID: "x"}, now(0))
		wantCode(t, "a visitor whose id is no UUID", err, apperr.Invalid)

		greetings := []chat.Message{fromCompany(newID(), noon), fromCompany(newID(), noon.Add(time.Millisecond))}
		n := now(0)
		n.Greetings = greetings
		first := openAs(t, s, v, n)
		want(t, "a new chat", first, opening{chat.Chat{
			ID: store.ChatID(uuid.MustParse(v.ID), 1), CompanyID: v.CompanyID, AppID: v.AppID, ChatUserID: v.ID, Channel: chat.ChannelWidget,
			CreatedAt: at(0), WindowStartedAt: at(0), IdleClosesAt: at(idle),
		}, true})
		want(t, "its greetings", walk(t, s, first.chat.ID, store.HistoryQuery{}), []chat.Message{stored(greetings[0]), stored(greetings[1])})
		n.Greetings = []chat.Message{fromCompany(newID(), noon)}
		want(t, "opening it again", openAs(t, s, v, n), opening{chat: first.chat})
		if all := walk(t, s, first.chat.ID, store.HistoryQuery{}); len(all) != 2 {
			t.Errorf("greeting again: got %d messages, want the first two", len(all))
		}
		want(t, "the current chat", get[chat.Chat](t)(store.CurrentChat(ctx, s, v, noon)), first.chat)

		get[chat.Chat](t)(s.ChangeChat(ctx, first.chat.ID, store.ChatChange{ClosedAt: noon.Add(2 * time.Hour)}))
		get[chat.Chat](t)(s.ChangeChat(ctx, first.chat.ID, store.ChatChange{ClosedAt: noon.Add(3 * time.Hour)}))
		get[chat.Chat](t)(s.ChangeChat(ctx, first.chat.ID, store.ChatChange{ClosedAt: noon.Add(time.Hour)}))
		want(t, "the first closing", get[chat.Chat](t)(s.Chat(ctx, first.chat.ID)).ClosedAt, at(time.Hour))
		_, err = store.CurrentChat(ctx, s, v, noon.Add(4*time.Hour))
		wantCode(t, "a visitor whose chat is closed", err, apperr.NotFound)

		second := openAs(t, s, v, now(4*time.Hour))
		if !second.opened || second.chat.ID != store.ChatID(uuid.MustParse(v.ID), 2) {
			t.Errorf("after closing: got %+v, want the visitor's second chat", second)
		}
		want(t, "its number at the visitor", get[chat.Visitor](t)(s.Visitor(ctx, v.ID)).ChatNumber, 2)
		want(t, "the second by the stale visitor", openAs(t, s, v, now(4*time.Hour)), opening{chat: second.chat})
	})
	t.Run("idleness", func(t *testing.T) {
		v := visitor(t)
		first := openAs(t, s, v, now(0))
		want(t, "at the last instant", openAs(t, s, v, store.NewChat{Channel: chat.ChannelWidget, Now: at(idle)}), opening{chat: first.chat})
		second := openAs(t, s, v, now(idle+time.Hour))
		if !second.opened {
			t.Error("after it: got the same chat, want a new one")
		}
		appendAll(t, s, first.chat.ID, text(newID(), noon.Add(idle)))
		closed := get[chat.Chat](t)(s.Chat(ctx, first.chat.ID))
		if !closed.ClosedAt.Equal(at(idle)) || closed.Open(noon) {
			t.Errorf("a late message: got %+v, want it closed for good at %v", closed, at(idle))
		}
		want(t, "the visitor's chat", get[chat.Chat](t)(store.CurrentChat(ctx, s, v, noon.Add(idle+time.Hour))), second.chat)
	})
	t.Run("opened by many at once", func(t *testing.T) {
		v := visitor(t)
		for round := range 3 {
			n := now(time.Duration(round) * 2 * idle)
			n.Greetings = []chat.Message{fromCompany(newID(), n.Now)}
			results := together(t, AtOnce, func(int) (opening, error) {
				c, opened, err := s.OpenChat(ctx, v, n)
				return opening{c, opened}, err
			})
			var found []string
			var opened []bool
			for _, r := range results {
				found, opened = append(found, r.chat.ID), append(opened, r.opened)
			}
			id := wantOneOf(t, "chats", found)
			if count(opened) != 1 {
				t.Errorf("round %d: got %d calls that opened it, want 1", round, count(opened))
			}
			if all := walk(t, s, id, store.HistoryQuery{}); len(all) != 1 {
				t.Errorf("round %d: got %d greetings, want 1", round, len(all))
			}
		}
	})
	t.Run("list", func(t *testing.T) { testChatList(t, s) })
}

func testChatList(t *testing.T, s store.Store) {
	ctx := t.Context()
	company, apps := newID(), []string{newID(), newID()}
	var all []chat.Chat // newest first
	for i := range 8 {
		v := save(t, s, chat.Visitor{ID: newID(), CompanyID: company, AppID: apps[i%2]})
		// two share each time
		all = append(all, openAs(t, s, v, store.NewChat{Channel: chat.ChannelWidget, Now: noon.Add(time.Duration(i/2) * time.Hour)}).chat)
	}
	slices.SortFunc(all, func(a, b chat.Chat) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.ID), []byte(b.ID))
	})
	get[chat.Chat](t)(s.ChangeChat(ctx, all[0].ID, store.ChatChange{ClosedAt: noon}))
	appendAll(t, s, all[1].ID, text(newID(), all[1].CreatedAt))
	all[0], all[1] = get[chat.Chat](t)(s.Chat(ctx, all[0].ID)), get[chat.Chat](t)(s.Chat(ctx, all[1].ID))
	chosen := func(keep func(chat.Chat) bool) (some []chat.Chat) {
		for _, c := range all {
			if keep(c) {
				some = append(some, c)
			}
		}
		return some
	}
	now := noon.Add(4 * time.Hour)
	for name, test := range map[string]struct {
		filter store.ChatFilter
		want   []chat.Chat
	}{
		"a company's":                {store.ChatFilter{CompanyID: company}, all},
		"an application's":           {store.ChatFilter{AppID: apps[0]}, chosen(func(c chat.Chat) bool { return c.AppID == apps[0] })},
		"a visitor's":                {store.ChatFilter{ChatUserID: all[3].ChatUserID}, all[3:4]},
		"all at once":                {store.ChatFilter{ChatUserID: all[3].ChatUserID, AppID: all[3].AppID, CompanyID: company}, all[3:4]},
		"another application's":      {store.ChatFilter{ChatUserID: all[3].ChatUserID, AppID: newID()}, nil},
		"closed":                     {store.ChatFilter{CompanyID: company, Status: chat.Closed, Now: now}, all[:1]},
		"active":                     {store.ChatFilter{CompanyID: company, Status: chat.Active, Now: now}, all[1:2]},
		"pending":                    {store.ChatFilter{CompanyID: company, Status: chat.Pending, Now: now}, all[2:]},
		"closed by idleness as well": {store.ChatFilter{CompanyID: company, Status: chat.Closed, Now: noon.Add(1000 * time.Hour)}, all},
	} {
		for _, limit := range []int{0, 1, 3} {
			var got []chat.Chat
			for p := (store.Page{Limit: limit}); ; p.After = got[len(got)-1].ID {
				page := get[[]chat.Chat](t)(s.Chats(ctx, test.filter, p))
				got = append(got, page...)
				if limit == 0 || len(page) < limit {
					break
				}
			}
			want(t, fmt.Sprintf("%s, %d a page", name, limit), got, test.want)
		}
	}
	if newest := get[[]chat.Chat](t)(s.Chats(ctx, store.ChatFilter{}, store.Page{Limit: 3})); len(newest) != 3 || newest[0].CreatedAt.Before(newest[2].CreatedAt) {
		t.Errorf("all chats: got %+v, want three, the newest first", newest)
	}
	_, err := s.Chats(ctx, store.ChatFilter{}, store.Page{After: newID()})
	wantCode(t, "a page after an unknown chat", err, apperr.NotFound)
}
