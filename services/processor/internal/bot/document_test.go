package bot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/testkit/needs"
)

const (
	documentPath = "../../../../docs/webhook-bot.md"
	examplePath  = "../../../../proto-events/examples/visitor-message-accepted.json"
)

// blocks returns the code blocks of docs/webhook-bot.md in a language.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```\n")
		found = append(found, block+"\n")
	}
	return found
}

// runDocumented runs a program of the document until the test ends, and returns its URL.
func runDocumented(t *testing.T, program, language, file string) (url string) {
	t.Helper()
	path := needs.Program(t, program)
	code := blocks(t, language)
	if len(code) != 1 {
		t.Fatalf("got %d blocks of %s in the document, want one", len(code), language)
	}
	if lines := strings.Count(code[0], "\n"); lines > 32 {
		t.Errorf("got %d lines of %s, want a program to read at a glance", lines, language)
	}
	file = filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(file, []byte(code[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, file)
	command.Env = append(os.Environ(), "PORT=0", "BOT_WEBHOOK_SECRET="+testSecret)
	command.Stderr = t.Output()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // fails if it has ended already
		_ = command.Wait()         // killed, so it returns an error
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	port, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on port ")
	if err != nil || !ok {
		t.Fatalf("got %q and %v from %s, want its port", line, err, program)
	}
	return "http://127.0.0.1:" + port
}

// The programs of docs/webhook-bot.md verify the signature and answer a text, a choice and a file.
func TestDocumentedBots(t *testing.T) {
	t.Parallel()
	for _, bot := range []struct{ program, language, file string }{{"python3", "python", "bot.py"}, {"node", "js", "bot.mjs"}} {
		t.Run(bot.program, func(t *testing.T) {
			t.Parallel()
			url := runDocumented(t, bot.program, bot.language, bot.file)
			open := func(secret string, now func() time.Time) *Webhook {
				w, err := NewWebhook(WebhookConfig{URL: url, Secret: secret, CallConfig: CallConfig{Now: now}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(w.Close)
				return w
			}
			w := open(testSecret, time.Now)
			for _, c := range []struct {
				typ        chat.MessageType
				data, want string
			}{
				{chat.Text, `{"text":"grüß dich"}`, "You sent grüß dich"},
				{chat.Text, `{"text":"` + strings.Repeat("x", chat.MaxTextLength) + `"}`, "You sent " + strings.Repeat("x", 3991)},
				{chat.MultipleChoiceReply, `{"text":"Cards","payload":"show-cards"}`, "You sent Cards"},
				{chat.File, `{"url":"https://example.com/a","fileName":"a.pdf"}`, "You sent a.pdf"},
			} {
				asked := wrote(c.typ, c.data)
				asked.Message.ID = uuid.NewString()
				answers, err := w.Answer(t.Context(), asked, nil)
				if err != nil || len(answers.Messages) != 1 {
					t.Fatalf("%s: got %v and %v, want an answer", c.data, answers, err)
				}
				var data struct{ Text string }
				if err := json.Unmarshal(answers.Messages[0].Data, &data); err != nil || data.Text != c.want {
					t.Errorf("got %q and %v, want %q", data.Text, err, c.want)
				}
			}
			var s stage
			if err := s.bot(w).VisitorMessage(t.Context(), newMessage("stream")); err != nil {
				t.Fatal(err)
			}
			if text, reason := s.final(t); text != "This comes word by word." || reason != "" || s.shown.Text != text {
				t.Errorf("got %q (%s) of the stream, and %+v of its parts", text, reason, s.shown)
			}
			for name, w := range map[string]*Webhook{
				"another secret": open("whsec_"+strings.Repeat("QUJD", 8), time.Now),
				"an old request": open(testSecret, func() time.Time { return time.Now().Add(-time.Hour) }),
			} {
				_, err := w.Answer(t.Context(), wrote(chat.Text, `{"text":"hello"}`), nil)
				if !apperr.Is(err, apperr.Invalid) || !strings.Contains(err.Error(), "401") {
					t.Errorf("%s: got %v, want a refusal with 401", name, err)
				}
			}
		})
	}
}

// The document's request is the event of the contract's example, and its answer is valid.
func TestDocumentedMessages(t *testing.T) {
	t.Parallel()
	found := blocks(t, "json")
	if len(found) != 3 {
		t.Fatalf("got %d blocks of JSON, want the request, the answer, and one that hands over", len(found))
	}
	text, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	var example struct{ Payload any }
	var request any
	if err := json.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(bytes.NewBufferString(found[0])).Decode(&request); err != nil || !reflect.DeepEqual(request, example.Payload) {
		t.Errorf("got the request %v and %v, want the contract's example %v", request, err, example.Payload)
	}
	answers, err := new(Webhook).parseAnswers([]byte(found[1]))
	if err != nil || len(answers.Messages) != 4 || answers.Messages[0].NameOfSender != "Ada" {
		t.Errorf("got %v and %v, want four answers, the first from Ada", answers, err)
	}
	answers, err = new(Webhook).parseAnswers([]byte(found[2]))
	if h := answers.Handover; err != nil || len(answers.Messages) != 1 || h == nil || h.Reason != "Refund" {
		t.Errorf("got %v and %v, want an answer and a handover", answers, err)
	}
}
