package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/nemesis"
)

// The models of a run with a language model. One answers in one piece, the other streams, for an application alone.
const (
	modelBrief = "brief"
	modelWordy = "wordy"
)

// What bounds the calls of the model. All questions have their answers soon after the last fault.
const (
	modelTimeout  = 1500 * time.Millisecond
	modelDeadline = 3 * time.Second
)

// The streamed answers are short: the next question of a visitor waits for the end of the answer.
const (
	mostPieces = 8
	piecePause = 40 * time.Millisecond
)

// nemesisModel is a server that plays language models, over the chat-completions protocol, and records what it writes.
// No two calls have the same answer: a reader that mixes them is found.
type nemesisModel struct {
	dependency
	world *nemesisWorld
	url   string
	appID string // the application of modelWordy
	calls atomic.Int64
}

// newModel starts the server.
func (w *nemesisWorld) newModel(t *testing.T) *nemesisModel {
	t.Helper()
	m := &nemesisModel{world: w}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// configure adds the application of the model that streams, and the settings of the services.
func (m *nemesisModel) configure(t *testing.T) {
	t.Helper()
	w := m.world
	configs := filepath.Join(w.dir, "widget.json")
	greeting := `{"greetingMessages":[{"content":"Welcome"}],"requiredFields":["email"]}`
	check(t, os.WriteFile(configs, []byte(greeting), 0o600))
	o := w.operator(t)
	m.appID = o.create(
		"applications", "create", "--company", w.CompanyID, "--name", "Wordy", "--bot-name", "Nora",
		"--widget-configs", configs,
	)
	connection := o.create("connections", "create", "--company", w.CompanyID, "--name", "Models", "--url", m.url)
	bot := filepath.Join(w.dir, "bot.json")
	settings := fmt.Sprintf(`{"kind":"model","model":{"connectionId":%q,"model":%q}}`, connection, modelWordy)
	check(t, os.WriteFile(bot, []byte(settings), 0o600))
	o.run("bots", "draft", m.appID, "--set", bot)
	o.run("bots", "publish", m.appID, "--unchecked") // no processor runs yet
	w.settings = append(w.settings,
		"BOT=llm",
		"LLM_BASE_URL="+m.url,
		"LLM_MODEL="+modelBrief,
		"LLM_TOKENS_APPLICATION=0",
		"BOT_WEBHOOK_TIMEOUT="+modelTimeout.String(),
		"BOT_WEBHOOK_DEADLINE="+modelDeadline.String(),
	)
}

// ServeHTTP answers a question.
func (m *nemesisModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model    string
		Messages []struct{ Content string }
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !m.admit(w, r) {
		return
	}
	question := asked.Messages[len(asked.Messages)-1].Content
	answer := nemesis.Completion{Question: nemesis.FindText(question)}
	defer func() { m.world.record.AddCompletion(answer) }()
	pieces := m.pieces(answer.Question)
	if asked.Model == modelWordy {
		stream(w, r, &m.dependency, pieces, &answer)
		return
	}
	answer.Text = strings.Join(pieces, "")
	answer.Ended = true
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"choices": [{"message": {"content": %q}, "finish_reason": "stop"}]}`, answer.Text)
}

// pieces returns the pieces of an answer.
func (m *nemesisModel) pieces(question string) []string {
	call := m.calls.Add(1)
	chance := m.world.chance(fmt.Sprintf("call %d", call))
	pieces := []string{fmt.Sprintf("%s Call %d:", question, call)}
	for n := range 1 + chance.IntN(mostPieces) {
		pieces = append(pieces, fmt.Sprintf(" piece %d 😀", n+1))
	}
	return pieces
}

// stream streams an answer, and notes how far it has come before each piece is written.
func stream(
	w http.ResponseWriter, r *http.Request, meets *dependency, pieces []string, answer *nemesis.Completion,
) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event string) {
		fmt.Fprintf(w, "data: %s\n\n", event)
		w.(http.Flusher).Flush()
	}
	for _, piece := range pieces {
		meets.goOn(r)
		answer.Text += piece
		send(fmt.Sprintf(`{"choices": [{"delta": {"content": %q}}]}`, piece))
		time.Sleep(piecePause)
	}
	meets.goOn(r)
	answer.Ended = true
	send(`{"choices": [{"delta": {}, "finish_reason": "stop"}]}`)
	send("[DONE]")
}
