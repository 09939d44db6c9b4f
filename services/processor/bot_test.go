package processor_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// questionTokens is what a question of [wordyModel] costs.
const questionTokens = 1000

// wordyModel starts a language model that counts its answers.
func wordyModel(t testing.TB) (url string, answered *atomic.Int64) {
	answered = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":%d,"completion_tokens":100}}`+"\n\ndata: [DONE]\n\n", questionTokens-100)
		answered.Add(1)
	}))
	t.Cleanup(server.Close)
	return server.URL, answered
}

// publishModel gives the application a language model of the company.
func (w *world) publishModel(url string, bounds bots.Bounds) {
	w.t.Helper()
	ctx := w.t.Context()
	c := bots.Connection{ID: uuid.NewString(), CompanyID: w.company.ID, Name: "Models", BaseURL: url, CreatedAt: now()}
	w.must(w.store.PutModelConnection(ctx, c))
	b := bots.Bot{AppID: w.application.ID, CompanyID: w.company.ID}
	b.Publish(bots.Settings{
		Kind: bots.Model, Model: bots.ModelSettings{ConnectionID: c.ID, Model: "small"}, Bounds: bounds,
	}, "test", now())
	w.must(w.store.PutBot(ctx, b))
}

// The bound of a day holds over three processors of which one is killed: what the model has written is within 5% of
// it, and every question has its answer.
func TestABoundThroughACrash(t *testing.T) {
	t.Parallel()
	const visitors, questions, bound = 40, 5, 100
	w := newWorld(t)
	url, answered := wordyModel(t)
	w.publishModel(url, bots.Bounds{
		Application: bots.Amount{Tokens: bound * questionTokens}, ExhaustedText: "Enough for today.",
	})
	binary := build(t)
	replies := w.collect(subject.AllReplies)
	allowed := "WEBHOOK_ALLOW_CIDRS=127.0.0.0/8"
	w.spawn(binary, allowed)
	w.spawn(binary, allowed)
	kill := w.spawn(binary, allowed)
	for range visitors {
		visitor, c := w.open(chat.Visitor{FirstName: "Sara", AppID: w.application.ID}, chat.ChannelWidget)
		for range questions {
			w.publish(event.VisitorMessageAccepted{
				CompanyID: w.company.ID, AppID: w.application.ID, ChatUserID: visitor.ID, ChatID: c.ID,
				Message: message(chat.Text, `{"text":"Where is it?"}`, "Sara"),
			})
		}
	}
	said := map[string]string{} // by the id of the answer: a plain subscriber also sees what the stream drops
	for len(said) < visitors*questions {
		awaitTakeover(t, replies)
		reply := decode[event.Reply](t, replies.Next())
		if _, again := said[reply.Message.ID]; !again {
			said[reply.Message.ID] = chat.TextOf(reply.Message.Data)
		}
		if len(said) == bound/3 {
			kill()
		}
	}
	texts := map[string]int{}
	for _, text := range said {
		texts[text]++
	}
	if got := answered.Load(); got < bound*95/100 || got > bound*105/100 {
		t.Errorf("got %d answers of the model, want %d: the visitors read %v", got, bound, texts)
	}
	if texts["Hi"]+texts["Enough for today."] != visitors*questions {
		t.Errorf("got the answers %v, want those of the model and the sentence", texts)
	}
	of := bots.Day(time.Now())
	days, err := w.store.BotUsage(t.Context(), w.application.ID, of)
	if err != nil || len(days) != 1 || days[0].Tokens > bound*questionTokens {
		t.Errorf("got the usage %+v and %v, want that of a day within the bound", days, err)
	}
}
