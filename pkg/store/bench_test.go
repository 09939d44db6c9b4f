package store_test

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

// The figures in docs/decisions/0002-keys-first-data.md come from here:
//
//	go test -run '^$' -bench . ./store

func BenchmarkAppendMessage(b *testing.B) {
	s := storetest.Open(b)
	c := openChat(b, s)
	n := 0
	defer reportCPU(b)()
	for b.Loop() {
		if err := s.AppendMessage(b.Context(), c.ID, text("Hello, how can we help you today?", at(n), true)); err != nil {
			b.Fatal(err)
		}
		if n++; n%100 == 0 {
			c = openChat(b, s)
		}
	}
}

func BenchmarkAppendMessageAgain(b *testing.B) {
	s := storetest.Open(b)
	c := openChat(b, s)
	m := text("Hello, how can we help you today?", at(0), true)
	defer reportCPU(b)()
	for b.Loop() {
		if err := s.AppendMessage(b.Context(), c.ID, m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendByLength appends to a chat of 10 messages and to one of 10,000 in turns, so that whatever else the machine does
// happens to both. Their last buckets fill alike.
func BenchmarkAppendByLength(b *testing.B) {
	s, raw := openRaw(b)
	short, _ := seedLong(b, s, raw, 10)
	long, _ := seedLong(b, s, raw, 10_010)
	chats := []string{short.ID, long.ID}
	n := 0
	compare(b, []string{"10", "10000"}, func(turn int) {
		n++
		if err := s.AppendMessage(b.Context(), chats[turn], text("Hello, how can we help you today?", at(10_000+n), true)); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkPageByLength reads pages in a chat that has no more than one, and anywhere in chats of 1,000 and 10,000.
func BenchmarkPageByLength(b *testing.B) {
	for _, limit := range []int{10, 100} {
		b.Run(strconv.Itoa(limit), func(b *testing.B) {
			s, raw := openRaw(b)
			lengths := []int{limit, 1000, 10_000}
			chats, histories := make([]string, len(lengths)), make([][]chat.Message, len(lengths))
			var names []string
			for n, length := range lengths {
				c, all := seedLong(b, s, raw, length)
				chats[n], histories[n] = c.ID, all
				names = append(names, strconv.Itoa(length))
			}
			n := 0
			compare(b, names, func(turn int) {
				before := ""
				if all := histories[turn]; len(all) > limit {
					n++
					before = all[limit+n*259%(len(all)-limit)].ID
				}
				if page, _, err := s.HistoryPage(b.Context(), chats[turn], before, limit); err != nil || len(page) != limit {
					b.Fatalf("got %d messages, %v", len(page), err)
				}
			})
		})
	}
}

// compare times the same work on several subjects in turns, and reports each and its ratio to the first.
func compare(b *testing.B, subjects []string, work func(turn int)) {
	spent := make([]time.Duration, len(subjects))
	for b.Loop() {
		for turn := range subjects {
			began := time.Now()
			work(turn)
			spent[turn] += time.Since(began)
		}
	}
	for turn, subject := range subjects {
		b.ReportMetric(float64(spent[turn].Microseconds())/float64(b.N), "µs/"+subject)
		b.ReportMetric(float64(spent[turn])/float64(spent[0]), "ratio/"+subject)
	}
}

func BenchmarkHistory(b *testing.B) {
	for _, count := range []int{100, 1000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			s := storetest.Open(b)
			c := openChat(b, s)
			for n := range count {
				if err := s.AppendMessage(b.Context(), c.ID, text("Hello, how can we help you today?", at(n), true)); err != nil {
					b.Fatal(err)
				}
			}
			defer reportCPU(b)()
			for b.Loop() {
				if history, err := s.History(b.Context(), c.ID); err != nil || len(history) != count {
					b.Fatalf("got %d messages, %v", len(history), err)
				}
			}
		})
	}
}

// single is a message in a document of its own: what the store does not do.
type single struct {
	ID            string    `bson:"_id"`
	ChatID        string    `bson:"chatId"`
	CreatedAt     time.Time `bson:"createdAt"`
	Type          string    `bson:"type"`
	Data          string    `bson:"data"`
	NameOfSender  string    `bson:"nameOfSender"`
	IsFromSupport bool      `bson:"isFromSupport"`
}

func newSingle(chatID string, n int) single {
	return single{
		ID: uuid.Must(uuid.NewV7()).String(), ChatID: chatID, CreatedAt: at(n), Type: "TEXT",
		Data: `{"text":"Hello, how can we help you today?"}`, NameOfSender: "Someone", IsFromSupport: true,
	}
}

func BenchmarkAppendSingle(b *testing.B) {
	_, raw := openRaw(b)
	n := 0
	defer reportCPU(b)()
	for b.Loop() {
		if _, err := raw.Collection("singles").InsertOne(b.Context(), newSingle("c", n)); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// BenchmarkHistorySingle reads the 100 messages of one chat among those of others, by the chat's id and by each message's id.
func BenchmarkHistorySingle(b *testing.B) {
	for _, chats := range []int{1, 10, 100} {
		_, raw := openRaw(b)
		singles := raw.Collection("singles")
		if _, err := singles.Indexes().CreateOne(b.Context(), indexOnChat()); err != nil {
			b.Fatal(err)
		}
		var ids []string
		for c := range chats {
			var all []any
			for n := range 100 {
				m := newSingle(fmt.Sprint("chat", c), n)
				if c == 0 {
					ids = append(ids, m.ID)
				}
				all = append(all, m)
			}
			if _, err := singles.InsertMany(b.Context(), all); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("by chat id among %d chats", chats), func(b *testing.B) {
			defer reportCPU(b)()
			for b.Loop() {
				cursor, err := singles.Find(b.Context(), bson.D{{Key: "chatId", Value: "chat0"}}, options.Find().SetBatchSize(1000))
				if err != nil {
					b.Fatal(err)
				}
				var got []single
				if err := cursor.All(b.Context(), &got); err != nil || len(got) != 100 {
					b.Fatalf("got %d messages, %v", len(got), err)
				}
			}
		})
		b.Run(fmt.Sprintf("by message ids among %d chats", chats), func(b *testing.B) {
			defer reportCPU(b)()
			for b.Loop() {
				for _, id := range ids {
					var got single
					if err := singles.FindOne(b.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&got); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func indexOnChat() mongo.IndexModel { return mongo.IndexModel{Keys: bson.D{{Key: "chatId", Value: 1}}} }

// reportCPU reports the processor time per operation, engine and driver included: on a busy machine it says more than the
// time that passed.
func reportCPU(b *testing.B) func() {
	used := func() (all time.Duration) {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "cpu-µs/op") }
}
