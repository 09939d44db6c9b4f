package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

func TestMessagesComeBackByteForByte(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	c := openChat(t, s)
	var want []chat.Message
	for n, id := range []string{uuid.NewString(), "1", "an.id$with%2Eall", "наш-id", "$set", strings.Repeat("x", 256)} {
		m := chat.Message{
			ID: id, CreatedAt: at(n), Type: chat.Interactive, Data: json.RawMessage(trickyJSON),
			NameOfSender: "O'Brien <b>\"&\" 😀", IsFromSupport: n%2 == 0,
		}
		if err := s.AppendMessage(t.Context(), c.ID, m); err != nil {
			t.Fatalf("appending %q: %v", id, err)
		}
		want = append(want, m)
	}
	got, err := s.History(t.Context(), c.ID)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestAppendMessageRefuses(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	c, other := openChat(t, s), openChat(t, s)
	taken := text("taken", at(1), true)
	if err := s.AppendMessage(t.Context(), other.ID, taken); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*chat.Message)) chat.Message {
		m := text("x", at(1), true)
		change(&m)
		return m
	}
	for why, try := range map[string]struct {
		chatID  string
		message chat.Message
		want    apperr.Code
	}{
		"an unknown chat":            {uuid.NewString(), text("x", at(1), true), apperr.NotFound},
		"a message of another chat":  {c.ID, taken, apperr.Invalid},
		"no id":                      {c.ID, with(func(m *chat.Message) { m.ID = "" }), apperr.Invalid},
		"an id that is too long":     {c.ID, with(func(m *chat.Message) { m.ID = strings.Repeat("x", 257) }), apperr.Invalid},
		"an id that is not text":     {c.ID, with(func(m *chat.Message) { m.ID = "\xff" }), apperr.Invalid},
		"no data":                    {c.ID, with(func(m *chat.Message) { m.Data = nil }), apperr.Invalid},
		"data that is not JSON":      {c.ID, with(func(m *chat.Message) { m.Data = json.RawMessage(`{`) }), apperr.Invalid},
		"data that is not text":      {c.ID, with(func(m *chat.Message) { m.Data = json.RawMessage("\"\xff\"") }), apperr.Invalid},
		"data beyond any stored one": {c.ID, with(func(m *chat.Message) { m.Data = jsonOf(8<<20 + 1) }), apperr.Invalid},
	} {
		if err := s.AppendMessage(t.Context(), try.chatID, try.message); !apperr.Is(err, try.want) {
			t.Errorf("%s: got %v, want %s", why, err, try.want)
		}
	}
	if history, err := s.History(t.Context(), c.ID); err != nil || len(history) != 0 || history == nil {
		t.Errorf("got %v, %v, want an empty history that is not nil", history, err)
	}
	if _, err := s.History(t.Context(), uuid.NewString()); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("the history of an unknown chat: got %v, want NotFound", err)
	}
}

// jsonOf is a JSON string of that many bytes.
func jsonOf(size int) json.RawMessage {
	return append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, size-2)...), '"')
}

// TestAppendingAtOnce appends 500 messages, each twice, from 16 goroutines.
func TestAppendingAtOnce(t *testing.T) {
	t.Parallel()
	s, raw := openRaw(t)
	c := openChat(t, s)
	const count, workers = 500 / scale, 16
	want := make([]chat.Message, count)
	work := make(chan chat.Message, 2*count)
	for n := range want {
		want[n] = text(fmt.Sprint(n), at(n), n%3 == 0)
		work <- want[n]
		if n%2 == 0 {
			work <- want[n] // again at once
		}
	}
	for n := 1; n < count; n += 2 {
		work <- want[n] // again later
	}
	close(work)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for m := range work {
				if err := s.AppendMessage(t.Context(), c.ID, m); err != nil {
					t.Errorf("appending: %v", err)
				}
			}
		})
	}
	all.Wait()
	got, err := s.History(t.Context(), c.ID)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %d messages, %v, want the %d in order", len(got), err, count)
	}
	for _, size := range bucketSizes(t, raw) {
		if size > 100 {
			t.Errorf("got a bucket of %d messages, want at most 100", size)
		}
	}
}

func bucketSizes(t *testing.T, raw rawDatabase) (sizes []int) {
	t.Helper()
	cursor, err := raw.Collection("buckets").Find(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	var documents []struct {
		M map[string]string `bson:"m"`
		S []byte            `bson:"s"`
	}
	if err := cursor.All(t.Context(), &documents); err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		sizes = append(sizes, len(d.M)+strings.Count(inflate(t, d.S), "\x1e"))
	}
	return sizes
}

func TestBucketsRollOver(t *testing.T) {
	t.Parallel()
	s, raw := openRaw(t)
	for why, test := range map[string]struct {
		filled int // units before
		size   int // of the first message's data
		want   []string
	}{
		"an empty chat":                        {0, 20, []string{"0", "0"}},
		"the hundredth unit is the first's":    {99, 20, []string{"0", "1"}},
		"a bucket that is full":                {100, 20, []string{"1", "1"}},
		"a large message overhangs":            {95, 640 << 10, []string{"0", "1"}},
		"a large message fills more than one":  {89, 640 << 10, []string{"0", "1"}},
		"a large message that fits to the end": {88, 640 << 10, []string{"0", "0"}},
	} {
		c := openChat(t, s)
		_, err := raw.Collection("chats").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: c.ID}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "filled", Value: int64(test.filled)}}}})
		if err != nil {
			t.Fatal(err)
		}
		first, second := text("", at(1), true), text("next", at(2), true)
		first.Data = jsonOf(test.size)
		for n, m := range []chat.Message{first, second} {
			if err := s.AppendMessage(t.Context(), c.ID, m); err != nil {
				t.Fatalf("%s: appending message %d: %v", why, n, err)
			}
			wantInBucket(t, raw, why, c.ID+":"+test.want[n], m.ID)
		}
		if history, err := s.History(t.Context(), c.ID); err != nil || !reflect.DeepEqual(history, []chat.Message{first, second}) {
			t.Errorf("%s: got %d messages, %v, want both", why, len(history), err)
		}
	}
}

func wantInBucket(t *testing.T, raw rawDatabase, why, bucket, messageID string) {
	t.Helper()
	var d struct {
		M map[string]string `bson:"m"`
	}
	err := raw.Collection("buckets").FindOne(t.Context(), bson.D{{Key: "_id", Value: bucket}}).Decode(&d)
	if _, there := d.M[messageID]; err != nil || !there {
		t.Errorf("%s: got %d messages in the bucket %s, %v, want %s among them", why, len(d.M), bucket, err, messageID)
	}
}

// TestAppendingAgainHealsACrash stops an append behind each of its steps and appends again.
func TestAppendingAgainHealsACrash(t *testing.T) {
	t.Parallel()
	for why, crash := range map[string]func(t *testing.T, raw rawDatabase, chatID string, m chat.Message){
		"only the counter moved": func(t *testing.T, raw rawDatabase, chatID string, m chat.Message) {
			remove(t, raw, "messages", m.ID)
			remove(t, raw, "buckets", chatID+":0")
		},
		"the place is taken, the message not written": func(t *testing.T, raw rawDatabase, chatID string, m chat.Message) {
			remove(t, raw, "buckets", chatID+":0")
		},
		"the place is lost, the message written": func(t *testing.T, raw rawDatabase, chatID string, m chat.Message) {
			remove(t, raw, "messages", m.ID)
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s, raw := openRaw(t)
			c := openChat(t, s)
			m := text("survives", at(1), false)
			if err := s.AppendMessage(t.Context(), c.ID, m); err != nil {
				t.Fatal(err)
			}
			crash(t, raw, c.ID, m)
			if err := s.AppendMessage(t.Context(), c.ID, m); err != nil {
				t.Fatal(err)
			}
			history, err := s.History(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			wantTexts(t, history, "survives")
			if got, err := s.Chat(t.Context(), c.ID); err != nil || got.Status(at(9)) != chat.Active {
				t.Fatalf("got %+v, %v, want an active chat", got, err)
			}
		})
	}
}

// TestOpeningHealsACrash opens a chat of which a crash left the greetings but no chat, and one that the visitor does not know.
func TestOpeningHealsACrash(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"chats", "visitors"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			s, raw := openRaw(t)
			v := newVisitor(t, s)
			start := store.NewChat{Channel: chat.ChannelWidget, Now: at(0), Greetings: greetings("one", "two")}
			c, _, err := s.OpenChat(t.Context(), v, start)
			if err != nil {
				t.Fatal(err)
			}
			remove(t, raw, lost, map[string]string{"chats": c.ID, "visitors": v.ID}[lost])
			start.Greetings = greetings("one", "two") // other ids, as another process would make them
			again, opened, err := s.OpenChat(t.Context(), v, start)
			if err != nil || again.ID != c.ID || opened != (lost == "chats") {
				t.Fatalf("got %+v, %v, %v, want the chat %s", again, opened, err, c.ID)
			}
			history, err := s.History(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			wantTexts(t, history, "one", "two")
		})
	}
}

// TestGreetingsThatAreAppendedToo counts them once, wherever they lie.
func TestGreetingsThatAreAppendedToo(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	greeting := greetings("hello")
	c, _, err := s.OpenChat(t.Context(), newVisitor(t, s), store.NewChat{Channel: chat.ChannelWidget, Now: at(0), Greetings: greeting})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 120 {
		if err := s.AppendMessage(t.Context(), c.ID, text(fmt.Sprint(n), at(10+n), false)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AppendMessage(t.Context(), c.ID, greeting[0]); err != nil {
		t.Fatal(err)
	}
	history, err := s.History(t.Context(), c.ID)
	if err != nil || len(history) != 121 || history[0].ID != greeting[0].ID {
		t.Fatalf("got %d messages, %v, want 121 with the greeting first", len(history), err)
	}
}

func TestLongHistory(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	c := openChat(t, s)
	const count = 1000 / scale
	want := make([]chat.Message, count)
	var group errgroup.Group
	group.SetLimit(8)
	for n := range want {
		want[n] = text(fmt.Sprint(n), at(n/2), n%2 == 0) // two share a time: their ids decide
		group.Go(func() error { return s.AppendMessage(t.Context(), c.ID, want[n]) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	got, err := s.History(t.Context(), c.ID)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %d messages, %v, want the %d in order", len(got), err, count)
	}
}

func remove(t *testing.T, raw rawDatabase, collection, id string) {
	t.Helper()
	r, err := raw.Collection(collection).DeleteOne(t.Context(), bson.D{{Key: "_id", Value: id}})
	if err != nil || r.DeletedCount != 1 {
		t.Fatalf("removing %s from %s: got %+v, %v, want 1 removed", id, collection, r, err)
	}
}
