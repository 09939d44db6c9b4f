package embedding

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/storetest"
)

// server makes embeddings of two numbers: of a text with one of the words, and of others.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	calls  [][]string // the texts of each call
	answer func(w http.ResponseWriter, texts []string) bool
}

// newServer returns a server. answer may answer in place of it.
func newServer(t *testing.T, answer func(w http.ResponseWriter, texts []string) bool) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

var moneyWords = []string{"refund", "money"}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked request
	if r.URL.Path != "/v1/embeddings" || json.NewDecoder(r.Body).Decode(&asked) != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	s.mu.Lock()
	s.calls = append(s.calls, asked.Input)
	s.mu.Unlock()
	if s.answer != nil && s.answer(w, asked.Input) {
		return
	}
	var answer response
	for i, text := range slices.Backward(asked.Input) { // servers may give them in any order
		about := func(word string) bool { return strings.Contains(strings.ToLower(text), word) }
		vector := []float32{0, 1}
		if slices.ContainsFunc(moneyWords, about) {
			vector = []float32{1, 0}
		}
		answer.Data = append(answer.Data, struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}{i, vector})
	}
	answer.Usage.Tokens = len(asked.Input)
	_ = json.NewEncoder(w).Encode(answer)
}

// sizes returns the numbers of texts of the calls so far.
func (s *server) sizes() (sizes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, texts := range s.calls {
		sizes = append(sizes, len(texts))
	}
	return sizes
}

// world is a company with a model, and a service whose clock stands still.
type world struct {
	*Service
	t       *testing.T
	store   store.Store
	company string
	now     time.Time
}

func newWorld(t *testing.T, baseURL string) *world {
	t.Helper()
	w := &world{t: t, store: storetest.Open(t), company: chat.NewID(), now: store.UTC(time.Now())}
	w.addModel(w.company, baseURL)
	w.Service = w.processor()
	return w
}

// processor returns a further service on the same store.
func (w *world) processor() *Service {
	s := New(Config{
		Store:     w.store,
		Cache:     w.store,
		Allow:     []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		PollEvery: time.Hour,
		Now:       func() time.Time { return w.now },
		Logger:    slog.New(slog.DiscardHandler),
	})
	w.t.Cleanup(s.Close)
	return s
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// addModel gives a company a connection and a model.
func (w *world) addModel(company, baseURL string) {
	w.t.Helper()
	c := bots.Connection{ID: chat.NewID(), CompanyID: company, BaseURL: baseURL + "/v1", APIKey: "sk-secret"}
	w.must(w.store.PutModelConnection(w.t.Context(), c))
	settings := knowledge.Settings{CompanyID: company, ConnectionID: c.ID, Model: "small"}
	w.must(w.store.PutKnowledgeSettings(w.t.Context(), settings))
}

// add adds a document of passages.
func (w *world) add(company string, texts ...string) {
	w.t.Helper()
	d := knowledge.Document{ID: chat.NewID(), CompanyID: company, Title: "Shop", Format: knowledge.Text}
	var passages []knowledge.Passage
	for i, text := range texts {
		passages = append(passages, knowledge.Passage{DocumentID: d.ID, CompanyID: company, Number: i + 1, Text: text})
	}
	w.must(w.store.PutDocument(w.t.Context(), d, passages))
}

// embedded returns how many passages have embeddings, and the failure.
func (w *world) embedded(company string) (int, string) {
	w.t.Helper()
	settings, err := w.store.KnowledgeSettings(w.t.Context(), company)
	w.must(err)
	c, err := w.store.ModelConnection(w.t.Context(), settings.ConnectionID)
	w.must(err)
	model := knowledge.EmbeddingModel(c.BaseURL, settings.Model)
	progress, err := w.store.EmbeddingProgress(w.t.Context(), company, model)
	w.must(err)
	return progress.Embedded, settings.Work.Failure
}

func (w *world) wantEmbedded(company string, want int, failure string) {
	w.t.Helper()
	got, said := w.embedded(company)
	if got != want || said != failure {
		w.t.Errorf("got %d embeddings and the failure %q, want %d and %q", got, said, want, failure)
	}
}

// texts returns a number of texts.
func texts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("parcel %d", i))
	}
	return all
}

// Embeddings are made in batches; one claim keeps a second processor from the same work, and one that was killed delays
// it.
func TestEmbeddingsAreMadeOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	w := newWorld(t, s.URL)
	w.add(w.company, texts(batch+1)...)
	killed := w.now.Add(claimTime)
	held, err := w.store.ClaimEmbedding(t.Context(), w.company, w.now, knowledge.Work{Until: killed})
	if err != nil || !held {
		t.Fatalf("got %v and %v, want the claim", held, err)
	}
	w.complete(t.Context(), w.company)
	w.wantEmbedded(w.company, 0, "")
	w.now = killed
	w.complete(t.Context(), w.company)
	w.wantEmbedded(w.company, batch+1, "")
	w.processor().complete(t.Context(), w.company)
	if got := s.sizes(); !slices.Equal(got, []int{batch, 1}) {
		t.Errorf("got calls for %v texts, want one of %d and one of 1", got, batch)
	}
	if got := testutil.ToFloat64(w.metrics.tokens); got != batch+1 {
		t.Errorf("got %v tokens, want those of the server", got)
	}
}

// Run completes what it is told of, and what it finds at its start.
func TestRun(t *testing.T) {
	t.Parallel()
	done := make(chan struct{}, 2)
	s := newServer(t, func(http.ResponseWriter, []string) bool { done <- struct{}{}; return false })
	w := newWorld(t, s.URL)
	w.add(w.company, "parcel")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.Run(ctx); close(ended) }()
	<-done
	other := chat.NewID()
	w.addModel(other, s.URL)
	w.add(other, "parcel")
	w.Wake(other)
	<-done
	stop()
	<-ended
}

// A company whose server fails waits, as long as the server asks for, on all processors, and shows why; another company
// does not.
func TestFailures(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(w http.ResponseWriter, _ []string) bool {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte("no\nmore of sk-secret"))
		return true
	})
	w := newWorld(t, s.URL)
	w.add(w.company, texts(2)...)
	other := chat.NewID()
	w.addModel(other, newServer(t, nil).URL)
	w.add(other, texts(2)...)
	w.complete(t.Context(), w.company)
	w.complete(t.Context(), other)
	w.wantEmbedded(w.company, 0, "The server answered 429: no more of [secret]")
	w.wantEmbedded(other, 2, "")

	w.now = w.now.Add(119 * time.Second)
	w.processor().complete(t.Context(), w.company)
	if got := len(s.sizes()); got != 1 {
		t.Errorf("got %d calls, want none before the time that the server asked for", got)
	}
	w.now = w.now.Add(time.Second)
	s.answer = nil
	w.complete(t.Context(), w.company)
	w.wantEmbedded(w.company, 2, "")
}

// TestWrongAnswers has answers from which no embedding is taken.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	const other = "The answer has other embeddings than it was asked for"
	for answer, want := range map[string]string{
		`oops`: "The answer has no embeddings",
		`{}`:   other,
		`{"data":[{"index":1,"embedding":[1]},{"index":0,"embedding":[1,2]}]}`:   other,
		`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`:     other,
		`{"data":[{"index":0,"embedding":[0]},{"index":1,"embedding":[0.0]}]}`:   other,
		`{"data":[{"index":0,"embedding":["x"]},{"index":1,"embedding":["x"]}]}`: "The answer has no embeddings",
	} {
		s := newServer(t, func(w http.ResponseWriter, _ []string) bool {
			_, _ = w.Write([]byte(answer))
			return true
		})
		w := newWorld(t, s.URL)
		w.add(w.company, texts(2)...)
		w.complete(t.Context(), w.company)
		w.wantEmbedded(w.company, 0, want)
	}
	w := newWorld(t, "http://127.0.0.1:1")
	w.add(w.company, "parcel")
	w.complete(t.Context(), w.company)
	w.wantEmbedded(w.company, 0, "No answer: connection refused")
}

// A text that the server refuses holds up no others. A server that refuses the model fails.
func TestRefusedTexts(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(w http.ResponseWriter, texts []string) bool {
		refused := slices.ContainsFunc(texts, func(text string) bool { return strings.HasSuffix(text, "parcel 3") })
		if refused {
			w.WriteHeader(http.StatusBadRequest)
		}
		return refused
	})
	w := newWorld(t, s.URL)
	w.add(w.company, texts(9)...)
	w.complete(t.Context(), w.company)
	w.wantEmbedded(w.company, 9, "")

	unknown := newServer(t, func(w http.ResponseWriter, _ []string) bool {
		w.WriteHeader(http.StatusNotFound)
		return true
	})
	w = newWorld(t, unknown.URL)
	w.add(w.company, texts(4)...)
	w.complete(t.Context(), w.company)
	w.wantEmbedded(w.company, 0, "The server answered 404")
}

// A question finds first what means the same. When the server fails, the words decide, and after some failures it is
// not asked.
func TestFindPassages(t *testing.T) {
	t.Parallel()
	fails := false
	s := newServer(t, func(w http.ResponseWriter, _ []string) bool {
		if fails {
			w.WriteHeader(http.StatusBadGateway)
		}
		return fails
	})
	w := newWorld(t, s.URL)
	find := func(want ...string) {
		t.Helper()
		var got []string
		found, err := w.FindPassages(t.Context(), w.company, knowledge.Query{Question: "Do I get my money for a parcel?"}, 2)
		w.must(err)
		for _, p := range found {
			got = append(got, p.Text)
			if p.Embedding.Vector != nil {
				t.Errorf("got %+v, want no vector", p)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	const first, second, third = "A parcel and its parcel and a parcel", "The parcel", "We give a refund for a parcel that is late or lost"
	w.add(w.company, first, second, third)
	find(first, second) // has no embeddings yet
	w.complete(t.Context(), w.company)
	find(first, third)
	fails = true
	calls := len(s.sizes())
	for range breakerFailures + 2 {
		find(first, second)
	}
	if got := len(s.sizes()) - calls; got != breakerFailures {
		t.Errorf("got %d calls of a server that fails, want %d", got, breakerFailures)
	}
	fails = false
	w.now = w.now.Add(time.Second)
	find(first, third)
	for order, want := range map[string]float64{orderNone: 1, orderMeaning: 2, orderFailed: breakerFailures, orderKept: 2} {
		if got := testutil.ToFloat64(w.metrics.searches.WithLabelValues(order)); got != want {
			t.Errorf("%s: got %v questions, want %v", order, got, want)
		}
	}
	if found, err := w.FindPassages(t.Context(), w.company, knowledge.Query{Question: "?"}, 2); err != nil || len(found) != 0 {
		t.Errorf("without a word: got %v and %v, want nothing", found, err)
	}
}

// A test of settings gets an embedding, or why there is none. A connection of another company is unknown.
func TestEmbed(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	w := newWorld(t, s.URL)
	settings, err := w.store.KnowledgeSettings(t.Context(), w.company)
	w.must(err)
	r := knowledge.EmbeddingRequest{
		CompanyID: w.company, ConnectionID: settings.ConnectionID, Model: "small", Text: "Hello",
	}
	a, err := w.Embed(t.Context(), r)
	if err != nil || a.Failure != "" || len(a.Embedding.Vector) != 2 || a.Embedding.Model != "small "+s.URL+"/v1" {
		t.Errorf("got %+v and %v, want an embedding", a, err)
	}
	s.answer = func(w http.ResponseWriter, _ []string) bool { w.WriteHeader(http.StatusNotFound); return true }
	if a, err := w.Embed(t.Context(), r); err != nil || !a.OfModel || a.Failure != "The server answered 404" {
		t.Errorf("got %+v and %v, want the refusal of the model", a, err)
	}
	r.CompanyID = chat.NewID()
	if _, err := w.Embed(t.Context(), r); err == nil {
		t.Error("a connection of another company: got no error, want one")
	}
}
