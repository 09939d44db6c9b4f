package store_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

// walk pages backwards through a chat and returns all messages in the order of the history. between is called before every
// page but the first.
func walk(t *testing.T, s *store.Store, chatID string, limit func() int, between func()) (all []chat.Message) {
	t.Helper()
	before := ""
	for {
		size := limit()
		messages, more, err := s.HistoryPage(t.Context(), chatID, before, size)
		if err != nil {
			t.Fatalf("the page before %q: %v", before, err)
		}
		if len(messages) > size || more && len(messages) < size {
			t.Fatalf("got a page of %d messages, more to come: %v, want %d", len(messages), more, size)
		}
		all = slices.Concat(messages, all)
		if !more {
			return all
		}
		before = messages[0].ID
		between()
	}
}

func always(limit int) func() int { return func() int { return limit } }

func nothing() {}

func ids(messages []chat.Message) string {
	var all []string
	for _, m := range messages {
		all = append(all, m.ID[len(m.ID)-6:])
	}
	return strings.Join(all, " ")
}

// Messages arrive up to some time late, and many share a time. Pages of every size show them in the order of the whole
// history, each once.
func TestPagesShowEachMessageOnceHoweverLateItCame(t *testing.T) {
	t.Parallel()
	s, raw := openRaw(t)
	for _, late := range []int{0, 3, 20, 100_000} { // in milliseconds; two messages are created in one
		t.Run(fmt.Sprint("by up to ", late), func(t *testing.T) {
			t.Parallel()
			c, _, err := s.OpenChat(t.Context(), newVisitor(t, s), store.NewChat{
				Channel: chat.ChannelWidget, Now: at(0), Greetings: greetings("one", "two", "three"),
			})
			if err != nil {
				t.Fatal(err)
			}
			const count = 60
			for n, m := range arriving(count, late) {
				appendAll(t, s, c.ID, m)
				wasteUnits(t, raw, c.ID, 7*n%60)
			}
			want, err := s.History(t.Context(), c.ID)
			if err != nil || len(want) != count+3 || !slices.IsSortedFunc(want, chat.CompareMessages) {
				t.Fatalf("got a history of %d messages, %v, want %d in order", len(want), err, count+3)
			}
			for _, limit := range []int{1, 7, len(want) - 1, len(want), 1000} {
				if limit == 1 && late != 20 {
					continue // many small pages: once is enough
				}
				if got := walk(t, s, c.ID, always(limit), nothing); !reflect.DeepEqual(got, want) {
					t.Errorf("pages of %d: got %s, want %s", limit, ids(got), ids(want))
				}
			}
		})
	}
}

// wasteUnits makes a chat of few messages have many buckets: it takes units as somebody would who crashes then.
func wasteUnits(t *testing.T, raw rawDatabase, chatID string, units int) {
	t.Helper()
	_, err := raw.Collection("chats").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: chatID}},
		bson.D{{Key: "$inc", Value: bson.D{{Key: "filled", Value: int64(units)}}}})
	if err != nil {
		t.Fatal(err)
	}
}

// arriving returns messages in the order in which they arrive: each comes up to late milliseconds after it was created.
func arriving(count, late int) []chat.Message {
	random := rand.New(rand.NewPCG(1, uint64(late)))
	type arrival struct {
		message chat.Message
		at      int
	}
	all := make([]arrival, count)
	for n := range all {
		all[n] = arrival{text(fmt.Sprint(n), at(10+n/2), n%3 == 0), n/2 + random.IntN(late+1)}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return a.at - b.at })
	var messages []chat.Message
	for _, a := range all {
		messages = append(messages, a.message)
	}
	return messages
}

// While somebody pages back, messages go on arriving, late ones too. What was there at the beginning is shown once.
func TestPagesWhileMessagesArrive(t *testing.T) {
	t.Parallel()
	s, raw := openRaw(t)
	c := openChat(t, s)
	arriving := arriving(120, 15)
	old, fresh := arriving[:60], arriving[60:]
	var group errgroup.Group // at once, so that the places are taken in one order and the messages written in another
	group.SetLimit(8)
	for _, m := range old {
		wasteUnits(t, raw, c.ID, 20)
		group.Go(func() error { return s.AppendMessage(t.Context(), c.ID, m) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(2, 3))
	got := walk(t, s, c.ID, func() int { return 1 + random.IntN(10) }, func() {
		n := min(len(fresh), 1+random.IntN(6))
		wasteUnits(t, raw, c.ID, 20)
		appendAll(t, s, c.ID, fresh[:n]...)
		fresh = fresh[n:]
	})
	seen := make(map[string]int)
	for _, m := range got {
		seen[m.ID]++
	}
	for id, times := range seen {
		if times > 1 {
			t.Errorf("got message %s %d times", id, times)
		}
	}
	for _, m := range old {
		if seen[m.ID] != 1 {
			t.Errorf("got message %s %d times, want it once: it was there before", m.ID, seen[m.ID])
		}
	}
	if !slices.IsSortedFunc(got, chat.CompareMessages) {
		t.Error("the pages are not in the order of the history")
	}
}

// A page reads the buckets that it needs: here all others are unreadable.
func TestPageReadsOnlyItsBuckets(t *testing.T) {
	t.Parallel()
	s, raw := openRaw(t)
	c, all := seedLong(t, s, raw, 1000)
	spoil := func(bucket int) {
		_, err := raw.Collection("buckets").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: fmt.Sprint(c.ID, ":", bucket)}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "m.spoilt", Value: "{"}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10 {
		if n != 5 {
			spoil(n)
		}
	}
	for _, page := range []struct{ end, size int }{{590, 10}, {590, 80}, {520, 19}, {598, 97}} {
		got, more, err := s.HistoryPage(t.Context(), c.ID, all[page.end].ID, page.size)
		if want := all[page.end-page.size : page.end]; err != nil || !more || !reflect.DeepEqual(got, want) {
			t.Errorf("%d before message %d: got %d messages, %v, %v, want them from one bucket", page.size, page.end, len(got), more, err)
		}
	}
	if _, _, err := s.HistoryPage(t.Context(), c.ID, "", 1); err == nil {
		t.Error("the last page: got no error, want it to read the last bucket: the test spoils nothing")
	}
}

// seedLong makes a chat with that many messages, a millisecond apart, faster than appending can.
func seedLong(t testing.TB, s *store.Store, raw rawDatabase, count int) (c chat.Chat, all []chat.Message) {
	t.Helper()
	c = openChat(t, s)
	var places []any
	for first := 0; first < count; first += 100 {
		records, sealed := bson.M{}, ""
		for n := first; n < min(first+100, count); n++ {
			m := text("Hello, how can we help you today?", at(n), true)
			m.ID = uuid.Must(uuid.NewV7()).String()
			if record := string(m.AppendJSON(nil)); first+100+10 <= count {
				sealed += "\x1e" + record
			} else {
				records[m.ID] = record
			}
			places = append(places, bson.M{"_id": m.ID, "chatId": c.ID, "bucket": int64(n / 100), "createdAt": m.CreatedAt})
			all = append(all, m)
		}
		insert(t, raw, "buckets", bson.M{"_id": fmt.Sprint(c.ID, ":", first/100), "m": records, "s": deflate(t, sealed)})
	}
	for rest := range slices.Chunk(places, 1000) {
		insert(t, raw, "messages", rest...)
	}
	_, err := raw.Collection("chats").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: c.ID}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "filled", Value: int64(count)}, {Key: "latest", Value: at(count - 1)}}}})
	if err != nil {
		t.Fatal(err)
	}
	return c, all
}

func insert(t testing.TB, raw rawDatabase, collection string, documents ...any) {
	t.Helper()
	if _, err := raw.Collection(collection).InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}

func TestPageBeforeWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	c, other := openChat(t, s), openChat(t, s)
	foreign := text("foreign", at(1), true)
	appendAll(t, s, other.ID, foreign)
	appendAll(t, s, c.ID, text("own", at(1), true))
	for _, before := range []string{uuid.NewString(), foreign.ID, "x", "\xff", strings.Repeat("x", 300)} {
		_, _, err := s.HistoryPage(t.Context(), c.ID, before, 1)
		if !apperr.Is(err, apperr.Invalid) || !strings.Contains(err.Error(), "before") {
			t.Errorf("before %q: got %v, want Invalid", before, err)
		}
	}
	if _, _, err := s.HistoryPage(t.Context(), uuid.NewString(), "", 1); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("an unknown chat: got %v, want NotFound", err)
	}
}

// An empty chat, one with greetings only, and the page before the first message.
func TestPagesAtTheBeginning(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got, more, err := s.HistoryPage(t.Context(), openChat(t, s).ID, "", 5); err != nil || more || len(got) != 0 {
		t.Errorf("an empty chat: got %v, %v, %v, want nothing", got, more, err)
	}
	hello := greetings("one", "two", "three")
	c, _, err := s.OpenChat(t.Context(), newVisitor(t, s), store.NewChat{Channel: chat.ChannelWidget, Now: at(0), Greetings: hello})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 2, 3, 4} {
		if got := walk(t, s, c.ID, always(limit), nothing); !reflect.DeepEqual(got, hello) {
			t.Errorf("pages of %d: got %s, want the greetings", limit, ids(got))
		}
	}
	if got, more, err := s.HistoryPage(t.Context(), c.ID, hello[0].ID, 5); err != nil || more || len(got) != 0 {
		t.Errorf("before the first: got %v, %v, %v, want nothing", got, more, err)
	}
}

// A bucket of which all writers crashed hides none of those below it.
func TestPagesPassOverAMissingBucket(t *testing.T) {
	t.Parallel()
	s, raw := openRaw(t)
	c, all := seedLong(t, s, raw, 350)
	remove(t, raw, "buckets", c.ID+":1")
	want := slices.Concat(all[:100], all[200:])
	for _, limit := range []int{20, 150, 400} {
		if got := walk(t, s, c.ID, always(limit), nothing); !reflect.DeepEqual(got, want) {
			t.Errorf("pages of %d: got %d messages, want %d in order", limit, len(got), len(want))
		}
	}
}

// What is delivered again says the same; should it not, because a bot has answered again, the first stays, also its time.
func TestTheFirstStays(t *testing.T) {
	t.Parallel()
	s, raw := openRaw(t)
	c := openChat(t, s)
	first := text("first", at(10), true)
	appendAll(t, s, c.ID, first, text("next", at(20), true))
	again := first
	again.CreatedAt, again.Data = at(30), []byte(`{"text":"again"}`)
	appendAll(t, s, c.ID, again)
	history, err := s.History(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantTexts(t, history, "first", "next")

	// Where a crash came between its place and its record, its place in time stays as well.
	remove(t, raw, "buckets", c.ID+":0")
	appendAll(t, s, c.ID, again)
	if history, err = s.History(t.Context(), c.ID); err != nil || len(history) != 1 || !history[0].CreatedAt.Equal(at(10)) {
		t.Fatalf("got %+v, %v, want the message where it was", history, err)
	}
}

func TestLatenessIsNotedOnlyWhenItGrows(t *testing.T) {
	t.Parallel()
	s, raw := openRaw(t)
	c := openChat(t, s)
	for n, step := range []struct {
		at   int
		late int64
	}{{1000, 0}, {1000, 0}, {990, 10}, {995, 10}, {2000, 10}, {1500, 500}} {
		appendAll(t, s, c.ID, text("x", at(step.at), true))
		var d struct {
			Late   int64     `bson:"late"`
			Latest time.Time `bson:"latest"`
		}
		err := raw.Collection("chats").FindOne(t.Context(), bson.D{{Key: "_id", Value: c.ID}}).Decode(&d)
		if err != nil || d.Late != step.late {
			t.Fatalf("step %d: got a lateness of %d, %v, want %d", n, d.Late, err, step.late)
		}
	}
}
