package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

func testMessages(t *testing.T, open Opener) {
	s, ctx := open(t, Options{IdleClose: time.Hour}), t.Context()

	t.Run("append and find", func(t *testing.T) {
		c, other := openChat(t, s, fromCompany("greeting-"+newID(), noon)), openChat(t, s)
		m := text(newID(), noon.Add(time.Minute))
		_, _, err := s.FindMessage(ctx, m.ID)
		wantReason(t, "an unknown message", err, apperr.NotFound, "MESSAGE_NOT_FOUND")
		wantReason(t, "a message to an unknown chat", s.AppendMessage(ctx, newID(), m), apperr.NotFound, "CHAT_NOT_FOUND")

		must(t, s.AppendMessage(ctx, c.ID, m))
		changed := fromCompany(m.ID, noon.Add(time.Hour))
		changed.Data = json.RawMessage(`{"text":"other"}`)
		must(t, s.AppendMessage(ctx, c.ID, changed))
		wantReason(t, "the id in another chat", s.AppendMessage(ctx, other.ID, m), apperr.Invalid, "MESSAGE_EXISTS")
		want(t, "the message", message(t, s, c.ID, m.ID), stored(m))
		greeting := walk(t, s, c.ID, store.HistoryQuery{})[0]
		want(t, "a greeting", message(t, s, c.ID, greeting.ID), greeting)
	})
	t.Run("the window", func(t *testing.T) {
		c := openChat(t, s)
		appendAll(t, s, c.ID, fromCompany(newID(), noon.Add(time.Hour)))
		want(t, "after a company's message", get[chat.Chat](t)(s.Chat(ctx, c.ID)), c)
		for _, minutes := range []int{3, 5, 4} {
			appendAll(t, s, c.ID, text(newID(), noon.Add(time.Duration(minutes)*time.Minute)))
		}
		c.VisitorWroteAt, c.WindowStartedAt, c.IdleClosesAt = at(5*time.Minute), at(5*time.Minute), at(65*time.Minute)
		want(t, "after a visitor's messages", get[chat.Chat](t)(s.Chat(ctx, c.ID)), c)
		late := openChat(t, s)
		appendAll(t, s, late.ID, text(newID(), noon.Add(-time.Minute)))
		late.VisitorWroteAt = at(-time.Minute)
		want(t, "after a message from before the chat", get[chat.Chat](t)(s.Chat(ctx, late.ID)), late)
	})
	// its megabytes slow down other look-ups of an emulation
	t.Run("odd and big data", func(t *testing.T) { testData(t, open(t)) })
	t.Run("refused", func(t *testing.T) {
		c := openChat(t, s)
		for name, m := range map[string]chat.Message{
			"no id":            {Data: json.RawMessage(`{}`)},
			"a long id":        {ID: strings.Repeat("x", 257), Data: json.RawMessage(`{}`)},
			"an id that is no": {ID: "\xff", Data: json.RawMessage(`{}`)},
			"no data":          {ID: newID()},
			"no JSON":          {ID: newID(), Data: json.RawMessage(`{`)},
			"no UTF-8":         {ID: newID(), Data: json.RawMessage("\"\xff\"")},
			"too much":         {ID: newID(), Data: json.RawMessage(`"` + strings.Repeat("x", 8<<20) + `"`)},
		} {
			wantCode(t, name, s.AppendMessage(ctx, c.ID, m), apperr.Invalid)
		}
		if all := walk(t, s, c.ID, store.HistoryQuery{}); len(all) != 0 {
			t.Errorf("got %d messages, want none", len(all))
		}
	})
	t.Run("many writers on one chat", func(t *testing.T) {
		const each = 8
		c := openChat(t, s)
		var all []chat.Message
		for i := range AtOnce * each {
			all = append(all, text(newID(), noon.Add(time.Duration(i%each)*time.Second)))
		}
		same := text(newID(), noon)
		together(t, AtOnce, func(n int) (struct{}, error) {
			for _, m := range append(slices.Clone(all[n*each:(n+1)*each]), same) {
				if err := s.AppendMessage(ctx, c.ID, m); err != nil {
					return struct{}{}, err
				}
			}
			return struct{}{}, nil
		})
		all = append(all, same)
		chat.SortMessages(all)
		want(t, "the history", ids(walk(t, s, c.ID, store.HistoryQuery{Limit: 100})), ids(all))
		want(t, "the window", get[chat.Chat](t)(s.Chat(ctx, c.ID)).WindowStartedAt, at((each-1)*time.Second))
	})
	t.Run("one message to two chats at once", func(t *testing.T) {
		for range AtOnce / 8 {
			m, chats := text(newID(), noon), []chat.Chat{openChat(t, s), openChat(t, s)}
			refused := together(t, 8, func(n int) (bool, error) {
				err := s.AppendMessage(ctx, chats[n%2].ID, m)
				if apperr.ReasonOf(orNil(err)) == "MESSAGE_EXISTS" {
					return true, nil
				}
				return false, err
			})
			holder, _, err := s.FindMessage(ctx, m.ID)
			must(t, err)
			for n, r := range refused {
				if r == (chats[n%2].ID == holder) {
					t.Errorf("appending to %s: got refused %v, want the opposite: the message is in %s", chats[n%2].ID, r, holder)
				}
			}
		}
	})
}

// orNil is an error whose reason can be read, also if it is nil.
func orNil(err error) error {
	if err == nil {
		return apperr.New(apperr.Internal, "NONE", "")
	}
	return err
}

// oddData is JSON that any reencoding would change.
func oddData() map[string]string {
	return map[string]string{
		"blanks":          "  {\n\t\"a\" : 1 }\r\n ",
		"order and twice": `{"b":1,"a":2,"b":3,"":0}`,
		"numbers":         `[1e999,-0,0.10,1.50E+2,12345678901234567890123456789,1e-400]`,
		"escapes":         `{"\u0061":"\u00e9\ud83d\ude00\/\u0000\u2028","lone":"\ud800"}`,
		"raw":             "{\"é😀\u2028\":\"<&>\x7f\"}",
		"names":           `{"$set":1,"a.b":2,"_id":3,"__proto__":4,"$":5}`,
		"no object":       `"text"`,
		"null":            `null`,
		"deep":            strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000),
		"64 KiB":          `{"text":"` + strings.Repeat("x", 64<<10) + `"}`,
		"the largest":     `"` + strings.Repeat("é", Largest/2-1) + `"`,
	}
}

func testData(t *testing.T, s store.Store) {
	ctx := t.Context()
	c := openChat(t, s)
	for name, data := range oddData() {
		m := text("id-"+newID(), noon)
		m.Data, m.NameOfSender = json.RawMessage(data), "A \"B\"\n"+Nul+" é😀\u2028"
		err := s.AppendMessage(ctx, c.ID, m)
		for tries := 0; apperr.Is(err, apperr.Unavailable) && tries < 10; tries++ { // megabytes, on a busy machine
			err = s.AppendMessage(ctx, c.ID, m)
		}
		must(t, err)
		if got := message(t, s, c.ID, m.ID); string(got.Data) != data || got.NameOfSender != m.NameOfSender {
			t.Errorf("%s: got %.200q of %q, want it byte for byte: %.200q", name, got.Data, got.NameOfSender, data)
		}
		last, _, err := s.History(ctx, c.ID, store.HistoryQuery{Limit: 100})
		must(t, err)
		if !slices.ContainsFunc(last, func(m chat.Message) bool { return string(m.Data) == data }) {
			t.Errorf("%s: it is not in the history byte for byte", name)
		}
	}
	odd := openChat(t, s)
	var all []chat.Message
	for _, id := range []string{"a.b$c%d|e", Nul + Nul, "é😀", " x ", "$ref", strings.Repeat("i", 256), "\"\\", "A", "a"} {
		m := text(id+newID()[:8], noon)
		if len(m.ID) > 256 {
			m.ID = id
		}
		all = append(all, m)
		must(t, s.AppendMessage(ctx, odd.ID, m))
		want(t, "a message with an odd id", message(t, s, odd.ID, m.ID), stored(m))
	}
	chat.SortMessages(all)
	want(t, "messages with odd ids, one at a time", ids(walk(t, s, odd.ID, store.HistoryQuery{Limit: 1})), ids(all))
}

func testHistory(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()

	t.Run("cursors", func(t *testing.T) {
		c, other := openChat(t, s), openChat(t, s)
		_, _, err := s.History(ctx, newID(), store.HistoryQuery{})
		wantReason(t, "an unknown chat", err, apperr.NotFound, "CHAT_NOT_FOUND")
		_, _, err = s.History(ctx, newID(), store.HistoryQuery{Before: newID(), Limit: 1})
		wantReason(t, "an unknown chat with a cursor", err, apperr.NotFound, "CHAT_NOT_FOUND")
		page, more, err := s.History(ctx, c.ID, store.HistoryQuery{Limit: 10})
		if err != nil || more || len(page) != 0 {
			t.Errorf("an empty chat: got %v, %v, %v, want nothing", page, more, err)
		}
		foreign := text(newID(), noon)
		appendAll(t, s, other.ID, foreign)
		for _, cursor := range []string{newID(), foreign.ID, "\xff", strings.Repeat("x", 5000)} {
			_, _, err := s.History(ctx, c.ID, store.HistoryQuery{Before: cursor, Limit: 1})
			if !apperr.Is(err, apperr.Invalid) || err.Error() != store.CursorNotInChat().Error() {
				t.Errorf("cursor %.20q: got %v, want %v", cursor, err, store.CursorNotInChat())
			}
		}

		var all []chat.Message
		for i := range 40 {
			all = append(all, text(newID(), noon.Add(time.Duration(i/4)*time.Millisecond))) // four share each time
		}
		chat.SortMessages(all)
		shuffled := slices.Clone(all)
		rand.Shuffle(len(all), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		appendAll(t, s, c.ID, shuffled...)
		for i := range all {
			all[i] = stored(all[i])
		}
		want(t, "the whole history", walk(t, s, c.ID, store.HistoryQuery{}), all)
		for end := range all {
			for _, limit := range []int{0, 1, 7, 100} {
				page, more, err := s.History(ctx, c.ID, store.HistoryQuery{Before: all[end].ID, Limit: limit})
				must(t, err)
				start := 0
				if limit > 0 {
					start = max(end-limit, 0)
				}
				if !slices.Equal(ids(page), ids(all[start:end])) || more != (start > 0) {
					t.Fatalf("%d before message %d: got %v, more %v, want %v, %v", limit, end, ids(page), more, ids(all[start:end]), start > 0)
				}
			}
		}
		exact, more, err := s.History(ctx, c.ID, store.HistoryQuery{Limit: len(all)})
		if must(t, err); more || len(exact) != len(all) {
			t.Errorf("a page as long as the history: got %d messages, more %v, want %d and no more", len(exact), more, len(all))
		}
	})
	t.Run("bounded bytes", func(t *testing.T) {
		c := openChat(t, s)
		var all []chat.Message
		for i := range 10 {
			m := text(newID(), noon.Add(time.Duration(i)*time.Second))
			m.Data = json.RawMessage(`"` + strings.Repeat("x", 98) + `"`) // 100 bytes
			all = append(all, m)
		}
		appendAll(t, s, c.ID, all...)
		for maxBytes, length := range map[int]int{1: 1, 99: 1, 100: 1, 199: 1, 200: 2, 999: 9, 1000: 10, 0: 10, 5000: 10} {
			page, more, err := s.History(ctx, c.ID, store.HistoryQuery{MaxBytes: maxBytes})
			must(t, err)
			if !slices.Equal(ids(page), ids(all[10-length:])) || more != (length < 10) {
				t.Errorf("at most %d bytes: got %d messages, more %v, want %d, %v", maxBytes, len(page), more, length, length < 10)
			}
			want(t, fmt.Sprintf("all in pages of %d bytes", maxBytes), ids(walk(t, s, c.ID, store.HistoryQuery{Limit: 100, MaxBytes: maxBytes})), ids(all))
		}
	})
	t.Run("pages while others write", func(t *testing.T) {
		c := openChat(t, s)
		var all []chat.Message
		for i := range 3 * AtOnce {
			all = append(all, text(newID(), noon.Add(time.Duration(i)*time.Second)))
		}
		appendAll(t, s, c.ID, all...)
		stop, stopped := make(chan struct{}), make(chan error, 1)
		go func() {
			for range 16 * AtOnce {
				select {
				case <-stop:
					stopped <- nil
					return
				default:
				}
				anywhere := time.Duration(rand.IntN(300_000)-50_000) * time.Millisecond
				if err := s.AppendMessage(ctx, c.ID, text(newID(), noon.Add(anywhere))); err != nil {
					stopped <- err
					return
				}
			}
			stopped <- nil
		}()
		for range 5 {
			walked := walk(t, s, c.ID, store.HistoryQuery{Limit: 7})
			if !slices.IsSortedFunc(walked, chat.CompareMessages) {
				t.Error("got pages out of order")
			}
			there := map[string]int{}
			for _, m := range walked {
				there[m.ID]++
			}
			for _, m := range all {
				if there[m.ID] != 1 {
					t.Fatalf("a message from before the walk: got it %d times, want once", there[m.ID])
				}
			}
		}
		close(stop)
		must(t, <-stopped)
	})
}
