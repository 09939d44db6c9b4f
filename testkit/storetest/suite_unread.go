package storetest

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// Unread messages are counted from each side's cursor.
func testUnread(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	const many = 100
	c := openChat(t, s, fromCompany("greeting", noon))
	unread := func(fromSupport bool, after chat.ReadCursor, limit int) int {
		t.Helper()
		return get[int](t)(s.CountUnread(ctx, c.ID, fromSupport, after, limit))
	}
	want(t, "of an unknown chat", get[int](t)(s.CountUnread(ctx, newID(), true, chat.ReadCursor{}, many)), 0)
	want(t, "the greeting", unread(true, chat.ReadCursor{}, many), 1)
	minute := noon.Add(time.Minute)
	for _, m := range []chat.Message{
		fromCompany("b", minute), text("v1", minute), fromCompany("a", minute), fromCompany("c", minute), text("v2", noon.Add(2*time.Minute)),
		fromCompany("d", noon.Add(3*time.Minute)),
	} {
		must(t, s.AppendMessage(ctx, c.ID, m))
	}
	want(t, "for the visitor", unread(true, chat.ReadCursor{}, many), 5)
	want(t, "for the company", unread(false, chat.ReadCursor{}, many), 2)
	want(t, "no more than the limit", unread(true, chat.ReadCursor{}, 2), 2)
	want(t, "after a message", unread(true, chat.ReadCursor{At: entered(time.Minute), MessageID: "b"}, many), 2)
	want(t, "after a message that does not exist", unread(true, chat.ReadCursor{At: entered(time.Minute), MessageID: "bb"}, many), 2)
	want(t, "after a time", unread(true, chat.ReadCursor{At: at(time.Minute)}, many), 1)
	want(t, "after the last", unread(true, chat.ReadCursor{At: entered(3 * time.Minute), MessageID: "d"}, many), 0)

	// Within a millisecond: a cursor with a message is exact, one with a time alone has read all of it.
	close := openChat(t, s)
	for n, m := range []chat.Message{text("z", noon), text("y", noon), text("x", noon)} {
		m.ID += newID()
		m.CreatedAt = entered(time.Duration(n) * time.Microsecond)
		must(t, s.AppendMessage(ctx, close.ID, m))
	}
	all := walk(t, s, close.ID, store.HistoryQuery{})
	if len(all) != 3 || all[0].ID[0] != 'z' || all[2].ID[0] != 'x' {
		t.Errorf("got %v, want the order of the microseconds", ids(all))
	}
	for n, m := range all {
		exact := chat.ReadCursor{At: m.CreatedAt, MessageID: m.ID}
		want(t, "within a millisecond", get[int](t)(s.CountUnread(ctx, close.ID, false, exact, many)), 2-n)
	}
	whole := chat.ReadCursor{At: store.UTC(all[0].CreatedAt)}
	want(t, "after a millisecond", get[int](t)(s.CountUnread(ctx, close.ID, false, whole, many)), 0)

	// Each side's cursor only advances, also on late updates.
	read := func(m chat.Message) chat.ReadCursor {
		t.Helper()
		get[[]string](t)(s.ReadUpTo(ctx, c.ID, m, noon))
		return get[store.ChatReceipts](t)(s.ChatReceipts(ctx, c.ID)).ReadUpTo
	}
	want(t, "before anything is read", get[store.ChatReceipts](t)(s.ChatReceipts(ctx, c.ID)).ReadUpTo, chat.ReadCursor{})
	want(t, "the visitor's cursor", read(fromCompany("b", minute)), chat.ReadCursor{At: entered(time.Minute), MessageID: "b"})
	want(t, "back to an earlier message", read(fromCompany("a", minute)), chat.ReadCursor{At: entered(time.Minute), MessageID: "b"})
	cursor := read(fromCompany("d", noon.Add(3*time.Minute)))
	want(t, "all read", unread(true, cursor, many), 0)
	get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{AgentsReadAt: minute}))
	get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{AgentsReadAt: noon}))
	found := get[chat.Chat](t)(s.Chat(ctx, c.ID))
	want(t, "the company's cursor", found.AgentsRead(), chat.ReadCursor{At: at(time.Minute)})
	want(t, "unread for the company", unread(false, found.AgentsRead(), many), 1)
	if !found.Unread() {
		t.Error("got a chat that is read, want it unread: the inbox and the count agree")
	}
	get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{AgentsReadAt: noon.Add(2 * time.Minute)}))
	found = get[chat.Chat](t)(s.Chat(ctx, c.ID))
	if n := unread(false, found.AgentsRead(), many); n != 0 || found.Unread() {
		t.Errorf("got %d unread and %v, want none", n, found.Unread())
	}
	cursors := together(t, AtOnce, func(n int) (chat.ReadCursor, error) {
		m := fromCompany("d", noon.Add(time.Duration(n)*time.Second+time.Hour))
		if _, err := s.ReadUpTo(ctx, c.ID, m, noon); err != nil {
			return chat.ReadCursor{}, err
		}
		receipts, err := s.ChatReceipts(ctx, c.ID)
		return receipts.ReadUpTo, err
	})
	for n, seen := range cursors {
		if own := at(time.Duration(n)*time.Second + time.Hour); seen.At.Before(own) {
			t.Errorf("got the cursor at %v after it was moved to %v, want it not to step back", seen.At, own)
		}
	}
}

// testUnreadOrder counts after messages that were appended in any order, several times, and replaced by a transfer: as
// many as the history has after the cursor.
func testUnreadOrder(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	c := openChat(t, s)
	random := rand.New(rand.NewPCG(29, 1))
	var messages []chat.Message
	for n := range 40 {
		m := text(strconv.Itoa(n), noon.Add(time.Duration(random.IntN(10))*time.Minute))
		m.IsFromSupport = random.IntN(3) == 0
		messages = append(messages, m)
	}
	check := func(when string) {
		t.Helper()
		history := walk(t, s, c.ID, store.HistoryQuery{})
		for n, m := range history {
			counted := map[bool]int{}
			for _, later := range history[n+1:] {
				counted[later.IsFromSupport]++
			}
			for _, fromSupport := range []bool{true, false} {
				after := chat.ReadCursor{At: m.CreatedAt, MessageID: m.ID}
				got := get[int](t)(s.CountUnread(ctx, c.ID, fromSupport, after, len(messages)))
				want(t, when+": after "+m.ID, got, counted[fromSupport])
			}
		}
	}
	for range 2 { // a repeat counts once
		appendAll(t, s, c.ID, messages...)
		check("appended")
	}
	var replaced []store.Record
	for _, m := range messages[:10] {
		m.CreatedAt = noon.Add(time.Duration(random.IntN(20)) * time.Minute)
		m.IsFromSupport = !m.IsFromSupport
		replaced = append(replaced, store.Record{Key: m.ID, Value: store.MessageRecord{ChatID: c.ID, Message: stored(m)}})
	}
	must(t, s.WriteRecords(ctx, "messages", replaced))
	check("replaced")
}
