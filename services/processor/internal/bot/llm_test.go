package bot

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/services/processor/internal/excerpt"
)

// model is a server of the chat-completions protocol: it streams words as events.
type model struct {
	words  []string
	finish string
	usage  string
	cut    bool // it ends without a final event
	status int
	header map[string]string
	plain  bool // it does not stream

	mu    sync.Mutex
	asked []completionRequest
	auth  []string
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request completionRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1/chat/completions" || !request.Stream || !request.StreamOptions.IncludeUsage {
		http.Error(w, "wrong request", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.asked, m.auth = append(m.asked, request), append(m.auth, r.Header.Get("Authorization"))
	m.mu.Unlock()
	for name, value := range m.header {
		w.Header().Set(name, value)
	}
	if m.status != 0 {
		w.WriteHeader(m.status)
		io.WriteString(w, `{"error":{"message":"no"}}`)
		return
	}
	if m.plain {
		w.Header().Set("Content-Type", "application/json")
		content, _ := json.Marshal(strings.Join(m.words, ""))
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":%s}`, content, m.usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event string) { fmt.Fprintf(w, "data: %s\n\n", event); w.(http.Flusher).Flush() }
	send(`{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`)
	for _, word := range m.words {
		content, _ := json.Marshal(word)
		send(`{"id":"1","choices":[{"index":0,"delta":{"content":` + string(content) + `},"finish_reason":null}],"usage":null}`)
	}
	if m.cut {
		panic(http.ErrAbortHandler)
	}
	finish := m.finish
	if finish == "" {
		finish = "stop"
	}
	send(`{"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"` + finish + `"}]}`)
	if m.usage != "" {
		send(`{"id":"1","choices":[],"usage":` + m.usage + `}`)
	}
	send("[DONE]")
}

// recent is the history of every chat.
type recent []chat.Message

func (r recent) Recent(_ context.Context, _, _ string, limit int) ([]chat.Message, error) {
	if r == nil {
		return nil, apperr.New(apperr.NotFound, "CHAT_NOT_FOUND", "Chat not found")
	}
	return r[max(0, len(r)-limit):], nil
}

func openLLM(t *testing.T, m http.Handler, change func(*LLMConfig)) *LLM {
	t.Helper()
	server := httptest.NewUnstartedServer(m)
	server.Config.ErrorLog = nil
	server.Start()
	t.Cleanup(server.Close)
	c := LLMConfig{
		BaseURL: server.URL + "/v1/", APIKey: "sk-test",
		Model:     bots.ModelSettings{Model: "small", Prompt: "You are Nora.", History: bots.DefaultHistory},
		Histories: recent(nil), CallConfig: CallConfig{Now: time.Now},
	}
	if change != nil {
		change(&c)
	}
	l, err := NewLLM(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestALanguageModelAnswers(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := &model{words: []string{"Your ", "parcel ", "is on its way 📦."}, usage: `{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500}`}
	asked := newMessage("Where is it?")
	before := func(i int, support bool, typ chat.MessageType, data string) chat.Message {
		return chat.Message{ID: fmt.Sprintf("m%d", i), CreatedAt: asked.Message.CreatedAt.Add(time.Duration(i-9) * time.Minute), Type: typ, Data: json.RawMessage(data), IsFromSupport: support}
	}
	later := before(99, false, chat.Text, `{"text":"Hello?"}`)
	l := openLLM(t, m, func(c *LLMConfig) {
		c.Model.History, c.Model.MaxTokens, c.Registerer = 4, 700, registry
		c.Histories = recent{
			before(1, false, chat.Text, `{"text":"too old"}`), before(2, true, chat.Interactive, `{"body":"Hello!"}`),
			before(3, false, chat.Image, `{"url":"https://x/y","fileName":"parcel.jpg","caption":"this one"}`), asked.Message, later,
		}
	})
	var s stage
	if err := s.bot(l).VisitorMessage(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	if text, reason := s.final(t); text != "Your parcel is on its way 📦." || reason != "" || s.shown.Text != text || !s.shown.Done {
		t.Errorf("got %q (%s) and %+v of the parts, want the model's words", text, reason, s.shown)
	}
	want := []completionMessage{
		{Role: "system", Content: "You are Nora."}, {Role: "assistant", Content: "Hello!"},
		{Role: "user", Content: "[image parcel.jpg] this one"}, {Role: "user", Content: "Where is it?"},
	}
	if got := m.asked[0]; fmt.Sprint(got.Messages) != fmt.Sprint(want) || got.Model != "small" || got.MaxTokens != 700 || m.auth[0] != "Bearer sk-test" {
		t.Errorf("got %+v with %s, want %v", got, m.auth[0], want)
	}
	for name, want := range map[string]float64{"parley_bot_llm_tokens_total input": 1000, "parley_bot_llm_tokens_total output": 500, "parley_bot_llm_calls_total ok": 1} {
		if got := value(t, registry, name); got != want {
			t.Errorf("got %s %v, want %v", name, got, want)
		}
	}
}

// A prompt has the newest messages of the chat, up to maxHistoryText, and always the visitor's own.
func TestAPromptIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	var history recent
	for i := range bots.DefaultHistory {
		data := fmt.Sprintf(`{"text":"%02d%s"}`, i, strings.Repeat("x", 4094))
		history = append(history, chat.Message{ID: fmt.Sprintf("m%02d", i), Type: chat.Text, Data: json.RawMessage(data)})
	}
	for name, test := range map[string]struct {
		question string
		want     []string // the beginnings of the messages
	}{
		"a short question": {"Hi", []string{"You", "17", "18", "19", "Hi"}},
		"a long question":  {strings.Repeat("é", maxHistoryText), []string{"You", "é"}},
	} {
		m := &model{}
		l := openLLM(t, m, func(c *LLMConfig) { c.Histories = history })
		if err := coded(t, l, newMessage(test.question)); err != nil {
			t.Fatal(err)
		}
		got := m.asked[0].Messages
		if len(got) != len(test.want) {
			t.Errorf("%s: got %d messages, want %d", name, len(got), len(test.want))
			continue
		}
		for i, want := range test.want {
			if !strings.HasPrefix(got[i].Content, want) {
				t.Errorf("%s: got %.10q as message %d, want %q", name, got[i].Content, i, want)
			}
		}
	}
}

// value returns a metric by its name and the value of its label.
func value(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	name, label, _ := strings.Cut(name, " ")
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && (label == "" || len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("got no metric %s %s", name, label)
	return 0
}

func TestALanguageModelFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		model        *model
		text, reason string
		code         apperr.Code
		pause        time.Duration
	}{
		"it does not stream":             {&model{words: []string{"All ", "at once"}, plain: true, usage: "null"}, "All at once", "", "", 0},
		"it breaks off":                  {&model{words: []string{"Half"}, cut: true}, "Half", "interrupted", "", 0},
		"it breaks off early":            {&model{cut: true}, "", "", apperr.Unavailable, 0},
		"it has written all that it may": {&model{words: []string{"Much"}, finish: "length"}, "Much", "length", "", 0},
		"its filter ends it":             {&model{words: []string{"Bad"}, finish: "content_filter"}, "Bad", "interrupted", "", 0},
		"its filter allows no word":      {&model{finish: "content_filter"}, "", "", apperr.Invalid, 0},
		"it is silent":                   {&model{}, "", "", "", 0},
		"it is busy":                     {&model{status: 429, header: map[string]string{"Retry-After": "7"}}, "", "", apperr.TooMany, 7 * time.Second},
		"it is unavailable":              {&model{status: 503}, "", "", apperr.Unavailable, 0},
		"the key is wrong":               {&model{status: 401}, "", "", apperr.Invalid, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s stage
			err := s.bot(openLLM(t, test.model, nil)).VisitorMessage(t.Context(), newMessage("go"))
			if test.code != "" || err != nil {
				coded, _ := errors.AsType[*apperr.Error](err)
				if apperr.CodeOf(err) != test.code || coded != nil && coded.RetryAfter != test.pause || len(s.parts)+len(s.replies) > 0 {
					t.Errorf("got %v, %d parts and %d replies, want %s and none", err, len(s.parts), len(s.replies), test.code)
				}
				return
			}
			if test.text == "" {
				if len(s.replies) > 0 {
					t.Errorf("got %+v, want no reply", s.replies)
				}
				return
			}
			if text, reason := s.final(t); text != test.text || reason != test.reason || s.shown.Text != text {
				t.Errorf("got %q (%s), want %q (%s)", text, reason, test.text, test.reason)
			}
		})
	}
}

// What a server says with a refusal is in the error, which the dead letter and the log show: its beginning,
// as one printable line, without our credentials.
func TestARefusalSaysWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	body := "{\n  \"error\": {\"message\": \"Incorrect API key\u202e: sk-test\x00\"}\n} " + strings.Repeat("é", excerpt.MaxBytes)
	refuse := func(status int, said string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, said+r.Header.Get("Authorization"))
		}
	}
	for name, test := range map[string]struct {
		answerer Answerer
		want     string
	}{
		"unauthorized": {openLLM(t, refuse(401, body), nil), `The LLM answered 401: { "error": {"message": "Incorrect API key : [secret] "} } ééé`},
		"bad request":  {openLLM(t, refuse(400, "no such model "), nil), "The LLM answered 400: no such model Bearer [secret]"},
		"unavailable":  {openLLM(t, refuse(503, "loading "), nil), "The LLM answered 503: loading Bearer [secret]"},
		"a password": {openLLM(t, refuse(403, "ada:hunter2 "), func(c *LLMConfig) {
			c.APIKey, c.BaseURL = "", strings.Replace(c.BaseURL, "http://", "http://ada:hunter2@", 1)
		}), "The LLM answered 403: ada:[secret] Basic [secret]"},
		"a webhook": {openWebhook(t, refuse(422, "wrong "+testSecret)), "The webhook answered 422: wrong [secret]"},
		"no body":   {openWebhook(t, refuse(403, "")), "The webhook answered 403"},
	} {
		_, err := test.answerer.Answer(t.Context(), newMessage("go"), nil)
		got := apperr.LogText(err)
		if !strings.HasPrefix(got, test.want) || len(got) > len("The LLM answered 401: ...")+excerpt.MaxBytes || !utf8.ValidString(got) {
			t.Errorf("%s: got %q, want it to begin with %q", name, got, test.want)
		}
	}
}

// A secret is recognised as URLs and JSON write it, and one that has another inside is replaced as a whole.
func TestSecretsOfAnAddress(t *testing.T) {
	t.Parallel()
	c := target{hidden: excerpt.Secrets("https://to+ken%2F1@bot.example/hook?part=sesame&key=sesame%2Fopen%3D", "sk/1=")}
	for said, want := range map[string]string{
		"no such page /hook?part=sesame&key=sesame%2Fopen%3D":             "no such page /hook?part=[secret]&key=[secret]",
		`{"key":"sesame\/open=","got":"sesame/open="}`:                    `{"key":"[secret]","got":"[secret]"}`,
		"Basic " + base64.StdEncoding.EncodeToString([]byte("to+ken/1:")): "Basic [secret]",
		"to+ken/1 to%2Bken%2F1 sk/1=":                                     "[secret] [secret] [secret]",
	} {
		if got := c.printable(said); got != want {
			t.Errorf("%s: got %q, want %q", said, got, want)
		}
	}
}

// The visitor reads only text that the hook has checked, or the hook's replacement.
func TestModeration(t *testing.T) {
	t.Parallel()
	words := strings.SplitAfter("First sentence. Then a secret. Never seen.", " ")
	for name, test := range map[string]struct {
		answer       func(text string) (status int, body string)
		text, reason string
		code         apperr.Code
	}{
		"it allows all": {func(string) (int, string) { return 200, `{"action":"allow"}` }, strings.Join(words, ""), "", ""},
		"it replaces": {func(text string) (int, string) {
			if strings.Contains(text, "secret") {
				return 200, `{"action":"replace","text":"I cannot talk about that."}`
			}
			return 200, `{"action":"allow"}`
		}, "I cannot talk about that.", "", ""},
		"it replaces by nothing": {func(string) (int, string) { return 200, `{"action":"replace","text":""}` }, "", "", ""},
		"it fails later": {func(text string) (int, string) {
			if strings.Contains(text, "secret") {
				return 500, ""
			}
			return 200, `{"action":"allow"}`
		}, "First sentence. ", "interrupted", ""},
		"it fails":               {func(string) (int, string) { return 500, "" }, "", "", apperr.Unavailable},
		"it says something else": {func(string) (int, string) { return 200, `{"action":"perhaps"}` }, "", "", apperr.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var asked moderationRequest
				if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.MessageID == "" || !strings.HasPrefix(strings.Join(words, ""), asked.Text) {
					t.Errorf("got %+v", asked)
				}
				status, body := test.answer(asked.Text)
				w.WriteHeader(status)
				io.WriteString(w, body)
			}))
			t.Cleanup(hook.Close)
			var s stage
			err := s.bot(openLLM(t, &model{words: words}, func(c *LLMConfig) { c.ModerationURL = hook.URL })).VisitorMessage(t.Context(), newMessage("go"))
			for _, p := range s.parts {
				if strings.Contains(p.Text, "secret") && test.text != strings.Join(words, "") {
					t.Errorf("got the part %q", p.Text)
				}
			}
			if test.code != "" || test.text == "" {
				if apperr.CodeOf(err) != test.code && err != nil || test.code != "" && err == nil || len(s.replies) > 0 {
					t.Errorf("got %v and %+v, want %q and no reply", err, s.replies, test.code)
				}
				return
			}
			if text, reason := s.final(t); err != nil || text != test.text || reason != test.reason || s.shown.Text != text {
				t.Errorf("got %v, %q (%s), parts %q, want %q (%s)", err, text, reason, s.shown.Text, test.text, test.reason)
			}
		})
	}
}

func TestLLMConfigNamesAllItsProblems(t *testing.T) {
	t.Parallel()
	c := LLMConfig{BaseURL: "x", Model: bots.ModelSettings{MaxTokens: -1}, ModerationURL: "x"}
	c.Tokens = config.Rate{Count: minTokens - 1, Per: time.Hour}
	if got := c.Problems(); len(got) != 6 {
		t.Errorf("got %d problems, want 6: %s", len(got), strings.Join(got, "; "))
	}
}
