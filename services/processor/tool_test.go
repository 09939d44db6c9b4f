package processor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// A processor that is killed while a tool changes something, or between that and the answer: the tool was called once,
// the visitor has one answer, and what it says is what is known.
func TestAToolThroughACrash(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ breakAt, answer string }{
		"during the call": {"tool", "It is not known whether this was done"},
		"after the call":  {"answer", "cancelled A1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			begun, killed := make(chan struct{}, 1), make(chan struct{})
			var broken atomic.Bool
			// at stands still once at a place, until the processor is killed.
			at := func(place string) {
				if place == c.breakAt && broken.CompareAndSwap(false, true) {
					begun <- struct{}{}
					<-killed
				}
			}
			var cancelled atomic.Int64
			w.publishTools(cancellingModel(t, at), cancellingShop(t, &cancelled, at))
			binary := build(t)
			replies := w.collect(subject.AllReplies)
			allowed := "WEBHOOK_ALLOW_CIDRS=127.0.0.0/8"
			kill := w.spawn(binary, allowed)
			w.publish(w.wrote(chat.Text, `{"text":"Cancel A1"}`))
			question := decode[event.Reply](t, replies.Next()).Message
			var data struct{ Buttons []struct{ Payload string } }
			w.must(json.Unmarshal(question.Data, &data))
			w.publish(w.wrote(chat.MultipleChoiceReply, fmt.Sprintf(`{"text":"Yes","payload":%q}`, data.Buttons[0].Payload)))
			<-begun
			kill()
			close(killed)
			w.spawn(binary, allowed)
			awaitTakeover(t, replies)
			answer := decode[event.Reply](t, replies.Next()).Message
			if text := chat.TextOf(answer.Data); !strings.HasPrefix(text, c.answer) {
				t.Errorf("got the answer %q, want %q", text, c.answer)
			}
			w.awaitHistory(4)
			if got := w.history(w.chat.ID)[3]; got.ID != answer.ID || chat.TextOf(got.Data) != chat.TextOf(answer.Data) {
				t.Errorf("the history ends with %+v, want the answer", got)
			}
			if n := cancelled.Load(); n != 1 {
				t.Errorf("the tool was called %d times, want once", n)
			}
		})
	}
}

// publishTools publishes a model that may use the tools of a server.
func (w *world) publishTools(model, shop string) {
	w.t.Helper()
	ctx := w.t.Context()
	for id, url := range map[string]string{"model": model, "shop": shop} {
		w.must(w.store.PutModelConnection(ctx, bots.Connection{
			ID: id, CompanyID: w.company.ID, Name: id, BaseURL: url, CreatedAt: time.Now(),
		}))
	}
	b := bots.Bot{AppID: w.application.ID, CompanyID: w.company.ID}
	b.Publish(bots.Settings{Kind: bots.Model, Model: bots.ModelSettings{
		ConnectionID: "model", Model: "small",
		Tools: bots.ToolSettings{Servers: []bots.ToolServer{{
			ConnectionID: "shop",
			Tools:        []bots.Tool{{Name: "cancel_order", Effect: bots.Changes, Question: "Cancel {order}?"}},
		}}},
	}}, "ada", time.Now())
	w.must(w.store.PutBot(ctx, b))
}

// cancellingModel wants to cancel an order, and then says what the tool has answered.
func cancellingModel(t *testing.T, at func(string)) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Messages []struct{ Role, Content string }
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		last := request.Messages[len(request.Messages)-1]
		w.Header().Set("Content-Type", "application/json")
		if last.Role != "tool" {
			fmt.Fprint(w, `{"choices":[{"message":{"content":"","tool_calls":[{"id":"1","type":"function","function":`+
				`{"name":"cancel_order","arguments":"{\"order\":\"A1\"}"}}]},"finish_reason":"tool_calls"}]}`)
			return
		}
		at("answer")
		content, _ := json.Marshal(last.Content)
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%s},"finish_reason":"stop"}]}`, content)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// cancellingShop has a tool that cancels orders.
func cancellingShop(t *testing.T, cancelled *atomic.Int64, at func(string)) (url string) {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	type input struct {
		Order string `json:"order"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "cancel_order"},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			cancelled.Add(1)
			at("tool")
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "cancelled " + in.Order}}}, nil, nil
		})
	options := &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}
	of := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options))
	t.Cleanup(of.Close)
	return of.URL
}
