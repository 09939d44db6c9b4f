//go:build unix

package sqlite

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

var benchTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// benchMessage is a typical visitor message: about 170 bytes of data.
func benchMessage(n int) chat.Message {
	return chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: benchTime.Add(time.Duration(n) * time.Second), Type: chat.Text, NameOfSender: "Ada Lovelace",
		Data: json.RawMessage(fmt.Sprintf(`{"text":"Message %d of a chat, as long as people write them when they ask about a delivery that has not come, `+
			`and what may be done about that now.","payload":"p%d"}`, n, n)),
	}
}

// benchStore creates chats with that many messages, written in interleaved order like those of different visitors.
func benchStore(b *testing.B, chats, messages int) (s *Store, ids []string, all [][]string) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "parley.db")
	s, err := Open(b.Context(), Config{Path: path, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close(b.Context()) })
	ids, all = make([]string, chats), make([][]string, chats)
	for i := range ids {
		v := chat.Visitor{ID: uuid.NewString(), CompanyID: uuid.NewString(), AppID: uuid.NewString()}
		c, _, err := s.OpenChat(b.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: benchTime})
		if err != nil {
			b.Fatal(err)
		}
		ids[i] = c.ID
	}
	fill(b, path, ids, all, messages)
	return s, ids, all
}

// fill bypasses the writer, which bounds how long a caller waits. The sides write in turn.
func fill(b *testing.B, path string, ids []string, all [][]string, messages int) {
	b.Helper()
	c, err := connect(path, writerSettings)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		b.Fatal(err)
	}
	for n := range len(ids) * messages {
		m, number := benchMessage(n/len(ids)), n%len(ids)
		m.IsFromSupport = n/len(ids)%2 == 1
		key, err := chatKey(c, ids[number])
		if err == nil {
			_, err = insertMessage(c, key, m)
		}
		if err != nil {
			b.Fatal(err)
		}
		all[number] = append(all[number], m.ID)
	}
	if _, err := c.exec("COMMIT"); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHistory reads pages: the last 100 of any chat, and 10 from a cursor anywhere in it.
func BenchmarkHistory(b *testing.B) {
	for _, size := range []struct{ chats, messages int }{{100, 100}, {1_000, 10}, {1, 10_000}, {10_000, 100}} {
		name := fmt.Sprintf("chats=%d/messages=%d", size.chats, size.messages)
		b.Run(name, func(b *testing.B) {
			s, ids, all := benchStore(b, size.chats, size.messages)
			b.Run("last 100", func(b *testing.B) {
				pages(b, s, func(n int) (string, store.HistoryQuery) { return ids[n%len(ids)], store.HistoryQuery{Limit: 100} })
			})
			b.Run("10 anywhere", func(b *testing.B) {
				pages(b, s, func(n int) (string, store.HistoryQuery) {
					in := n % len(ids)
					return ids[in], store.HistoryQuery{Limit: 10, Before: all[in][n*7919%len(all[in])]}
				})
			})
			b.Run("last 10", func(b *testing.B) {
				pages(b, s, func(n int) (string, store.HistoryQuery) { return ids[n%len(ids)], store.HistoryQuery{Limit: 10} })
			})
		})
	}
}

func pages(b *testing.B, s *Store, query func(n int) (string, store.HistoryQuery)) {
	var next atomic.Int64
	b.ReportAllocs()
	before := processorTime(b)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			id, q := query(int(next.Add(104_729)))
			if _, _, err := s.History(b.Context(), id, q); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
	reportProcessorTime(b, before)
}

// processorTime is the CPU time of the process, which is more meaningful than wall time on a shared machine.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func reportProcessorTime(b *testing.B, before time.Duration) {
	b.Helper()
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// BenchmarkAppend has 64 callers append to 1,000 chats: waiting writes share one commit.
func BenchmarkAppend(b *testing.B) {
	for _, filled := range []int{0, 200, 1_000} {
		b.Run(fmt.Sprintf("filled=%d", filled*1_000), func(b *testing.B) {
			s, ids, _ := benchStore(b, 1_000, filled)
			var next atomic.Int64
			atOnce(b, 64, func(int) error {
				n := int(next.Add(1))
				return s.AppendMessage(b.Context(), ids[n%len(ids)], benchMessage(filled+n))
			})
		})
	}
	b.Run("one caller", func(b *testing.B) {
		s, ids, _ := benchStore(b, 1_000, 0)
		atOnce(b, 1, func(n int) error { return s.AppendMessage(b.Context(), ids[n%len(ids)], benchMessage(n)) })
	})
}

// BenchmarkRegister has 64 callers register new visitors, each with a chat and a greeting.
func BenchmarkRegister(b *testing.B) {
	s, _, _ := benchStore(b, 1, 0)
	company, app := uuid.NewString(), uuid.NewString()
	atOnce(b, 64, func(n int) error {
		now := benchTime.Add(time.Duration(n) * time.Millisecond)
		mail := fmt.Sprint(uuid.NewString(), "@example.com")
		_, err := s.Register(b.Context(), store.Registration{
			Visitor:    chat.Visitor{CompanyID: company, AppID: app, FirstName: "Ada", Email: mail},
			Identities: []store.Identity{{Scope: app, Kind: store.KindEmail, Value: mail}},
			Chat:       &store.NewChat{Channel: chat.ChannelWidget, Now: now, Greetings: []chat.Message{benchMessage(0)}},
		})
		return err
	})
}

// BenchmarkInbox lists a company's chats: the first page, the next from a cursor in the middle, unread chats, and a
// text that matches one visitor's name.
func BenchmarkInbox(b *testing.B) {
	for _, chats := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("chats=%d", chats), func(b *testing.B) {
			s, _, _ := benchStore(b, 1, 0)
			company, app := uuid.NewString(), uuid.NewString()
			inbox(b, s, company, app, chats)
			middle := &store.InboxCursor{ActivityAt: benchTime.Add(time.Duration(chats/2) * time.Second)}
			for _, list := range []struct {
				name   string
				filter store.InboxFilter
				page   store.InboxPage
			}{
				{"first", store.InboxFilter{CompanyID: company, Now: benchTime}, store.InboxPage{Limit: 50}},
				{"middle", store.InboxFilter{CompanyID: company, Now: benchTime}, store.InboxPage{Limit: 50, After: middle}},
				{"application", store.InboxFilter{CompanyID: company, AppID: app, Now: benchTime}, store.InboxPage{Limit: 50}},
				{"unread", store.InboxFilter{CompanyID: company, Unread: true, Now: benchTime}, store.InboxPage{Limit: 50}},
				{"text", store.InboxFilter{CompanyID: company, Text: fmt.Sprintf("ada%d@", chats-500), Now: benchTime}, store.InboxPage{Limit: 50}},
			} {
				b.Run(list.name, func(b *testing.B) {
					for b.Loop() {
						if found, _, err := s.Inbox(b.Context(), list.filter, list.page); err != nil || len(found) == 0 {
							b.Fatalf("got %d chats, %v", len(found), err)
						}
					}
				})
			}
		})
	}
}

// inbox registers visitors and lets each write once.
func inbox(b *testing.B, s *Store, company, app string, chats int) {
	b.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for n := int(next.Add(1)); n <= chats; n = int(next.Add(1)) {
				r, err := s.Register(b.Context(), store.Registration{
					Visitor:    chat.Visitor{CompanyID: company, AppID: app, FirstName: "Ada", Email: fmt.Sprintf("ada%d@example.com", n)},
					Identities: []store.Identity{{Scope: app, Kind: store.KindEmail, Value: fmt.Sprintf("ada%d@example.com", n)}},
					Chat:       &store.NewChat{Channel: chat.ChannelWidget, Now: benchTime},
				})
				if err == nil {
					err = s.AppendMessage(b.Context(), r.Chat.ID, benchMessage(n))
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func atOnce(b *testing.B, callers int, call func(n int) error) {
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime(b)
	var next atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for n := int(next.Add(1)); n <= b.N; n = int(next.Add(1)) {
				if err := call(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	reportProcessorTime(b, before)
}

// BenchmarkUnread counts what the company wrote, of chats that nobody has read: the sides write in turn, or only the
// visitor writes.
func BenchmarkUnread(b *testing.B) {
	count := func(b *testing.B, s *Store, id string) {
		for b.Loop() {
			if _, err := s.CountUnread(b.Context(), id, true, chat.ReadCursor{}, 100); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, messages := range []int{10, 200, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", messages), func(b *testing.B) {
			s, ids, _ := benchStore(b, 1, messages)
			b.Run("in turn", func(b *testing.B) { count(b, s, ids[0]) })
			b.Run("only the visitor's", func(b *testing.B) {
				c, err := connect(s.path, writerSettings)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				if _, err := c.exec(`UPDATE messages SET from_support = FALSE`); err != nil {
					b.Fatal(err)
				}
				count(b, s, ids[0])
			})
		})
	}
}
