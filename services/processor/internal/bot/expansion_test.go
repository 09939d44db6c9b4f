package bot

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/testkit/storetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// writer is a model that writes words to search with, and otherwise repeats its instructions.
type writer struct {
	words  string
	status int // for words; 0: OK

	mu    sync.Mutex
	asked []completionRequest // for words
}

func (m *writer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request completionRequest
	_ = json.NewDecoder(r.Body).Decode(&request)
	said := request.Messages[0].Content
	if strings.HasPrefix(said, wordsWanted) {
		m.mu.Lock()
		m.asked = append(m.asked, request)
		m.mu.Unlock()
		said = m.words
		if m.status != 0 {
			w.WriteHeader(m.status)
		}
	}
	content, _ := json.Marshal(said)
	const form = `{"choices":[{"message":{"content":%s},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":100,"completion_tokens":10}}`
	_, _ = io.WriteString(w, fmt.Sprintf(form, content))
}

// What no word of the question finds is found by the words of the model. Without them the question's own words are
// searched, and a company can do without.
func TestASearchIsExpanded(t *testing.T) {
	t.Parallel()
	documents := storetest.Open(t)
	d := knowledge.Document{
		ID: "d", CompanyID: "company", Title: "Orders", Format: knowledge.Markdown,
		Text: "## Money\n\nRefunds take five days.\n\n## Parcels\n\nThe customer is told when it is back.",
	}
	if err := documents.PutDocument(t.Context(), d, knowledge.Cut(d)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, words string
		status      int
		search      bots.Search
		refund      bool // the passage about it is sent
		tokens      int
		logged      string
	}{
		{name: "expanded", words: "refund  money\ndays", refund: true, tokens: 220, logged: "refund money days"},
		{name: "refused", words: "refund", status: http.StatusBadRequest, tokens: 110},
		{name: "an answer in place of words", words: strings.Repeat("refund ", 100), tokens: 220},
		{name: "no words", tokens: 220},
		{name: "plain", words: "refund", search: bots.Plain, tokens: 110},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := &writer{words: test.words, status: test.status}
			server := httptest.NewServer(m)
			t.Cleanup(server.Close)
			p := &publishedBots{byApp: map[string]bots.Bot{}, connection: bots.Connection{
				ID: "c1", CompanyID: "company", BaseURL: server.URL + "/v1",
			}}
			p.publish(appOne, bots.Settings{Kind: bots.Model, Model: bots.ModelSettings{
				ConnectionID: "c1", Model: "small", Prompt: "We sell shoes.",
				Knowledge: bots.KnowledgeSettings{Passages: 1, Search: test.search},
			}})
			l := &ledger{}
			r := openRouterWith(t, p, l.process(t, 1), localhost)
			r.cfg.LLM.cfg.Passages = searched{documents}
			r.cfg.LLM.cfg.Histories = recent{{
				ID: chat.NewID(), Type: chat.Text, Data: TextData("Send it back."), IsFromSupport: true,
			}}
			asked := wroteTo(appOne)
			asked.CompanyID = "company"
			asked.Message.Data = TextData("When will the customer have it back?")
			result, err := r.Answer(t.Context(), asked, unseen)
			if err != nil {
				t.Fatal(err)
			}
			answer := chat.TextOf(result.Messages[0].Data)
			if sent := strings.Contains(answer, "five days"); sent != test.refund {
				t.Errorf("got the instructions %q, want the refund in them: %v", answer, test.refund)
			}
			if sent := strings.Contains(answer, "customer is told"); sent == test.refund {
				t.Errorf("got the instructions %q, want the passage of the question's words: %v", answer, !test.refund)
			}
			timetest.Until(t, "the call is logged", func() bool { return len(l.logged()) == 1 })
			call := l.logged()[0]
			if call.SearchWords != test.logged || call.InputTokens+call.OutputTokens != test.tokens {
				t.Errorf("got %q and %d tokens in the log, want %q and %d",
					call.SearchWords, call.InputTokens+call.OutputTokens, test.logged, test.tokens)
			}
			if (len(m.asked) == 0) != (test.search == bots.Plain) {
				t.Errorf("the model was asked for words %d times", len(m.asked))
			}
			for _, request := range m.asked {
				const said = "Answer: Send it back.\n\nVisitor: When will the customer have it back?"
				system, user := request.Messages[0].Content, request.Messages[1].Content
				if user != said || !strings.HasSuffix(system, "We sell shoes.") || len(request.Messages) != 2 {
					t.Errorf("got %q and %q, want the purpose and the conversation", system, user)
				}
			}
		})
	}
}

// A model that takes too long for words answers without them.
func TestAnAnswerDoesNotWaitForWords(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	m := &writer{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "At most 12 single words") {
			<-r.Context().Done()
			close(gone)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		m.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p := &publishedBots{byApp: map[string]bots.Bot{}, connection: bots.Connection{
		ID: "c1", CompanyID: "company", BaseURL: server.URL + "/v1",
	}}
	p.publish(appOne, bots.Settings{Kind: bots.Model, Model: bots.ModelSettings{
		ConnectionID: "c1", Model: "small", Knowledge: bots.KnowledgeSettings{Passages: 1},
	}})
	r := openRouterWith(t, p, (&ledger{}).process(t, 1), localhost)
	r.cfg.LLM.wordsTime = 50 * time.Millisecond
	r.cfg.LLM.cfg.Passages = library{}
	result, err := r.Answer(t.Context(), wroteTo(appOne), unseen)
	if err != nil || len(result.Messages) != 1 {
		t.Fatalf("got %+v and %v, want an answer", result, err)
	}
	<-gone
}
