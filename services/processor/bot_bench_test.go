package processor_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/processor"
)

// allowLocal admits servers of tests.
var allowLocal = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// place is an application with a visitor.
type place struct {
	appID, visitorID, chatID string
}

// place adds an application with a visitor.
func (w *world) place() place {
	w.t.Helper()
	app := w.application
	app.ID = uuid.NewString()
	w.must(w.store.PutApplication(w.t.Context(), app))
	v, c := w.open(chat.Visitor{FirstName: "Sara", AppID: app.ID}, chat.ChannelWidget)
	return place{app.ID, v.ID, c.ID}
}

// asks publishes a question of the visitor.
func (w *world) asks(p place) {
	w.publish(event.VisitorMessageAccepted{
		CompanyID: w.company.ID, AppID: p.appID, ChatUserID: p.visitorID, ChatID: p.chatID,
		Message: message(chat.Text, `{"text":"Where is it?"}`, "Sara"),
	})
}

// report reports percentiles of durations in milliseconds.
func report(b *testing.B, took []time.Duration, unit string) {
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		at := took[min(len(took)-1, len(took)*p/100)]
		b.ReportMetric(float64(at.Microseconds())/1000, fmt.Sprintf("p%d-%s", p, unit))
	}
}

// BenchmarkBots is the way of a question through a processor, from its publication to the reply: to the operator's one
// model, and to those of 1,000 applications. One question runs at a time, to another application each.
func BenchmarkBots(b *testing.B) {
	for _, test := range []struct {
		name string
		apps int
		own  bool
	}{{"operator", 1000, false}, {"own", 1000, true}, {"bounded", 1000, true}} {
		b.Run(test.name, func(b *testing.B) {
			w := newWorld(b)
			url, _ := wordyModel(b)
			places := make([]place, test.apps)
			var bounds bots.Bounds
			if test.name == "bounded" {
				bounds = bots.Bounds{Application: bots.Amount{Questions: 1e6, Tokens: 1e9}}
			}
			for i := range places {
				places[i] = w.place()
				if test.own {
					w.application.ID = places[i].appID
					w.publishModel(url, bounds)
				}
			}
			cfg := w.config()
			cfg.BotConfig = processor.BotConfig{Bot: processor.BotLLM, LLMConfig: processor.LLMConfig{
				LLMBaseURL: url, LLMModel: "small", LLMHistory: 20,
			}}
			cfg.WebhookAllow = allowLocal
			w.run(cfg)
			replies := w.collect(subject.AllReplies)
			ask := func(p place) time.Duration {
				began := time.Now()
				w.asks(p)
				replies.Next()
				return time.Since(began)
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for _, p := range places { // its record is in memory then
				ask(p)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			var took []time.Duration
			for n := 0; b.Loop(); n++ {
				took = append(took, ask(places[n%len(places)]))
			}
			report(b, took, "ms")
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/1024/float64(test.apps), "KiB/application")
		})
	}
}

// BenchmarkPublication is how long after a publication the last of twelve visitors, over three processors, is answered
// by the version before.
func BenchmarkPublication(b *testing.B) {
	w := newWorld(b)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, `{"messages":[{"type":"TEXT","data":{"text":%q}}]}`, strings.TrimPrefix(r.URL.Path, "/"))
	}))
	b.Cleanup(server.Close)
	o := admin.New(w.store, w.bus, time.Now)
	version := 0
	publish := func() {
		version++
		url := fmt.Sprintf("%s/v%d", server.URL, version)
		_, err := o.SetBotDraft(b.Context(), admin.Actor{Name: "bench"}, w.application.ID, admin.AnyRevision,
			bots.Settings{Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: url}})
		w.must(err)
		_, _, err = o.PublishBot(b.Context(), admin.Actor{Name: "bench"}, w.application.ID,
			admin.Publication{Revision: admin.AnyRevision, Unchecked: true})
		w.must(err)
	}
	publish()
	binary := build(b)
	for range 3 {
		w.spawn(binary, "WEBHOOK_ALLOW_CIDRS=127.0.0.0/8")
	}
	replies := w.collect(subject.AllReplies)
	visitors := make([]place, 12)
	for i := range visitors {
		v, c := w.open(chat.Visitor{FirstName: "Sara", AppID: w.application.ID}, chat.ChannelWidget)
		visitors[i] = place{w.application.ID, v.ID, c.ID}
	}
	// round asks for all visitors and reports whether the version in force has answered all of them.
	round := func() bool {
		for _, v := range visitors {
			w.asks(v)
		}
		all := true
		for range visitors {
			reply := decode[event.Reply](b, replies.Next())
			all = all && chat.TextOf(reply.Message.Data) == fmt.Sprint("v", version)
		}
		return all
	}
	for !round() { // all processors read
	}
	var took []time.Duration
	for b.Loop() {
		publish()
		began := time.Now()
		for !round() {
		}
		took = append(took, time.Since(began))
	}
	report(b, took, "ms")
}

// BenchmarkFlood is how long the visitor of one application waits for the answer of a model that needs 50 ms: alone, and
// while another company's application has 10,000 questions of half a second. These take different times, as those of models
// do: equal ones end together, in waves.
func BenchmarkFlood(b *testing.B) {
	for _, flood := range []int{0, 10_000} {
		b.Run(fmt.Sprint(flood, "_questions"), func(b *testing.B) {
			w := newWorld(b)
			var flooded atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), "flood") {
					time.Sleep(200*time.Millisecond + rand.N(500*time.Millisecond))
					flooded.Add(1)
				}
				time.Sleep(50 * time.Millisecond)
				io.WriteString(rw, `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`)
			}))
			b.Cleanup(server.Close)
			w.publishModel(server.URL, bots.Bounds{})
			quiet := place{w.application.ID, w.visitor.ID, w.chat.ID}
			calm := w.company
			w.company = chat.Company{ID: uuid.NewString(), Name: "Flood"}
			w.must(w.store.PutCompany(b.Context(), w.company))
			noisy := w.place()
			w.application.ID = noisy.appID
			w.publishModel(server.URL, bots.Bounds{})
			strangers := make([]place, min(flood, 500))
			for i := range strangers {
				v, c := w.open(chat.Visitor{FirstName: "Flood", AppID: noisy.appID}, chat.ChannelWidget)
				strangers[i] = place{noisy.appID, v.ID, c.ID}
			}
			cfg := w.config()
			cfg.WebhookAllow = allowLocal
			cfg.Recorder, cfg.Webhooks = true, false
			cfg.BotConcurrency = 1000
			w.run(cfg)
			answers := w.collect(subject.Reply(quiet.appID, quiet.visitorID))
			var flooding sync.WaitGroup
			for _, s := range strangers {
				flooding.Go(func() {
					for range flood / len(strangers) {
						w.publish(event.VisitorMessageAccepted{
							CompanyID: w.company.ID, AppID: s.appID, ChatUserID: s.visitorID, ChatID: s.chatID,
							Message: message(chat.Text, `{"text":"flood"}`, "Flood"),
						})
					}
				})
			}
			flooding.Wait()
			w.company = calm
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				w.asks(quiet)
				answers.Next()
				took = append(took, time.Since(began))
			}
			report(b, took, "ms")
			b.ReportMetric(float64(flood)-float64(flooded.Load()), "left")
		})
	}
}
