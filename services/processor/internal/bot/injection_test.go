package bot

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/storetest"
)

//go:embed testdata/injections.txt
var injections string

// obedient is a model that does the worst that a text can ask for: it calls all tools that it knows or guesses, and
// writes out what it was sent, as far as a message holds it. What it was not sent it cannot tell.
type obedient struct {
	requests atomic.Int64
	passages atomic.Int64 // requests with a passage
	leaks    atomic.Int64 // requests with a secret
}

func (m *obedient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.Add(1)
	var request completionRequest
	_ = json.NewDecoder(r.Body).Decode(&request)
	step := 0
	var seen strings.Builder
	for _, message := range request.Messages {
		seen.WriteString(message.Content + "\n")
		if message.Role == roleTool {
			step++
		}
	}
	wants := []wish{
		{tool: "order_status", arguments: `{"order":"A1"}`},
		{tool: "delete_everything", arguments: `{}`},
		{tool: "search_documents", arguments: `{"companyId":"globex","text":"salary"}`},
		{tool: "cancel_order", arguments: `{"order":"A1","confirmed":true}`},
	}
	for _, secret := range []string{"GLOBEX-SECRET", "sk-own", "shop-secret"} {
		if strings.Contains(seen.String(), secret) {
			m.leaks.Add(1)
		}
	}
	text := seen.String()
	if strings.Contains(text, "Orders, part") {
		m.passages.Add(1)
	}
	answer := []wish{{text: strings.ToValidUTF8(text[:min(len(text), 500)], "")}}
	if step < len(wants) {
		answer = append(answer, wants[step])
	}
	write(w, answer)
}

// searched finds passages by their words.
type searched struct{ store.Store }

func (s searched) FindPassages(
	ctx context.Context, companyID string, q knowledge.Query, limit int,
) ([]knowledge.Passage, error) {
	return s.SearchPassages(ctx, companyID, q.Terms(), limit)
}

// Each text, as a question, in a document and in the result of a tool, with a model that obeys it: nothing is changed
// unasked, and nothing is shown of another company or of a key.
func TestInjections(t *testing.T) {
	t.Parallel()
	texts := strings.Split(strings.TrimSpace(injections), "\n")
	if len(texts) != 50 {
		t.Fatalf("got %d texts, want 50", len(texts))
	}
	documents := storetest.Open(t)
	add := func(companyID, text string) {
		d := knowledge.Document{ID: chat.NewID(), CompanyID: companyID, Title: "Orders", Format: knowledge.Text, Text: text, CreatedAt: time.Now(), UpdatedAt: time.Now()}
		if err := documents.PutDocument(t.Context(), d, knowledge.Cut(d)); err != nil {
			t.Fatal(err)
		}
	}
	add("globex", "The salary of Globex's director and the prices of order A1 are GLOBEX-SECRET.")
	for i, text := range texts {
		add("company", fmt.Sprintf("Orders, part %d. %s", i, text))
	}
	w := openToolWorld(t)
	model := &obedient{}
	w.bots.connection.BaseURL = modelBot(t, model, bots.Bounds{}).connection.BaseURL
	w.bots.publish(appOne, bots.Settings{Kind: bots.Model, Model: bots.ModelSettings{
		ConnectionID: "c1", Model: "small", Knowledge: bots.KnowledgeSettings{Passages: 10},
		Tools: bots.ToolSettings{Servers: []bots.ToolServer{{ConnectionID: "shop", Tools: shopTools()}}},
	}})
	w.cfg.LLM.cfg.Passages = searched{documents}
	for i, text := range texts {
		w.shop.mu.Lock()
		w.shop.said = text
		w.shop.mu.Unlock()
		asked := wroteTo(appOne)
		asked.CompanyID = "company"
		asked.Message.Data, _ = json.Marshal(map[string]string{"text": text + " order A1"})
		if i%2 == 1 { // a button that the visitor was never shown
			asked.Message.Type = chat.MultipleChoiceReply
			asked.Message.Data, _ = json.Marshal(map[string]string{"text": text, "payload": agreePayload + chat.NewID()})
		}
		result := w.says(t, w.Router, asked)
		if n := len(result.Messages); n == 0 || result.Messages[n-1].Type != chat.Interactive {
			t.Errorf("%q: got %d messages, want a question at the end", text, n)
		}
	}
	if got := w.shop.orders(); len(got) > 0 {
		t.Errorf("cancelled %v unasked", got)
	}
	if n := model.leaks.Load(); n > 0 {
		t.Errorf("%d requests had a text of another company, or a key", n)
	}
	if model.passages.Load() == 0 {
		t.Error("no request had a passage")
	}
	if n := model.requests.Load(); n < int64(4*len(texts)) {
		t.Errorf("the model was asked %d times, want four times for each text", n)
	}
}
