package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// operator runs parleyctl in the folder of a running demo, without any settings.
type operator struct {
	t    *testing.T
	path string
	env  []string
}

func newOperator(t *testing.T, s *standalone) *operator {
	return &operator{t: t, path: program(t, "parleyctl"), env: []string{"PARLEY_DATA_DIR=" + s.dir}}
}

// run runs a command line that must succeed, and returns its output.
func (o *operator) run(args ...string) []byte {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), o.path, args...)
	cmd.Env = append(o.env, "HOME="+os.Getenv("HOME"))
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		o.t.Fatalf("parleyctl %s: %v: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	check(o.t, err)
	return out
}

// ask runs a command line and decodes its JSON.
func ask[T any](o *operator, args ...string) (v T) {
	o.t.Helper()
	out := o.run(append(args, "-o", "json")...)
	if err := json.Unmarshal(out, &v); err != nil {
		o.t.Fatalf("parleyctl %s: %v in %s", strings.Join(args, " "), err, out)
	}
	return v
}

// create creates a record and returns its id.
func (o *operator) create(args ...string) string {
	o.t.Helper()
	return ask[struct{ ID string }](o, args...).ID
}

// TestParleyctl does an operator's work with the built program, from creating a company to a conversation and
// its deletion.
func TestParleyctl(t *testing.T) {
	s := commonStandalone(t)
	o := newOperator(t, s)
	company := o.create("companies", "create", "--name", "From nothing")
	configs := filepath.Join(t.TempDir(), "widget.json")
	check(t, os.WriteFile(configs, []byte(`{"greetingMessages":[{"content":"Welcome"}],"requiredFields":["email"]}`), 0o600))
	app := o.create("applications", "create", "--company", company, "--name", "Shop", "--bot-name", "Nora", "--widget-configs", configs)
	token := ask[struct{ Secret, ID string }](o, "tokens", "create", "--company", company, "--name", "CRM")

	there := s.place
	there.AppID, there.CompanyID, there.AccessToken = app, company, token.Secret
	api, widget := there.clientAPI(t), there.widgetAPI(t)
	v := register(t, there, widget)
	if received := v.history(t); len(received) != 1 || received[0].member(t, "text") != "Welcome" || received[0].NameOfSender != "Nora" {
		t.Errorf("got %+v, want the greeting of the file", received)
	}
	socket := connected(t, there.SocketURLs[0], v.token, "websocket")
	chats := ask[[]struct{ ID, Status string }](o, "chats", "list", "--app", app, "--email", v.email)
	if len(chats) != 1 || chats[0].Status != "pending" {
		t.Fatalf("got %+v, want the visitor's chat", chats)
	}
	chatID := chats[0].ID

	watching, err := spawn("parleyctl", o.env, o.path, "watch", "--app", app, "--since", "1m", "-o", "json")
	check(t, err)
	watching.stopAtEnd(t)
	send := func() httpapitest.Response {
		return api.call(t, http.MethodPost, "/message/send", map[string]any{"chatId": chatID, "type": "TEXT", "data": map[string]string{"text": "from the CRM"}}, accessToken(token.Secret))
	}
	accepted := want[sent](t, http.StatusOK, send())
	for _, kind := range []string{"registration", "company-message", "reply"} {
		awaitPassing(t, watching, kind, chatID)
	}
	if d := socket.next(t); d.ID != accepted.MessageID {
		t.Errorf("got %+v, want the company's message", d)
	}
	o.run("reply", chatID, "I am a person.", "--name", "Grace")
	if d := socket.next(t); d.NameOfSender != "Grace" || d.member(t, "text") != "I am a person." || !d.IsFromSupport {
		t.Errorf("got %+v, want the agent's words", d)
	}
	eventually(t, "the chat shows what was written", func() error {
		shown := ask[struct {
			WindowExpiresAt string
			Messages        []record
		}](o, "chats", "show", chatID)
		if len(shown.Messages) != 3 || shown.WindowExpiresAt != accepted.WindowExpiresAt {
			return fmt.Errorf("got %+v, want three messages and the window of the answer, %s", shown, accepted.WindowExpiresAt)
		}
		return nil
	})
	eventually(t, "the trace is complete", func() error { return traceComplete(o, accepted.MessageID) })

	o.run("chats", "close", chatID, "--yes")
	eventually(t, "the closed chat refuses", func() error { return refusedAs(send(), http.StatusBadRequest, "CHAT_CLOSED") })
	o.run("tokens", "revoke", token.ID, "--yes")
	eventually(t, "the revoked token is refused", func() error { return refusedAs(send(), http.StatusUnauthorized, "UNAUTHORIZED") })
	if code, err := watching.stop(); err != nil || code != 0 {
		t.Errorf("stopping watch: got code %d, %v, want 0", code, err)
	}
}

func refusedAs(got httpapitest.Response, status int, code string) error {
	var body httpapi.Problem
	if err := json.Unmarshal([]byte(got.Body), &body); err != nil || got.Status != status || body.Code != code {
		return fmt.Errorf("got %d %s, want %d %s", got.Status, got.Body, status, code)
	}
	return nil
}

// awaitPassing reads the output of watch until it prints an event of the kind, which must be of the chat.
func awaitPassing(t *testing.T, watching *child, kind, chatID string) {
	t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case line, ok := <-watching.lines:
			var passing struct{ Kind, ChatID string }
			if err := json.Unmarshal([]byte(line), &passing); !ok || err != nil {
				t.Fatalf("watch printed %q (%v) and wrote %s", line, err, watching.stderr)
			}
			if passing.ChatID != chatID {
				t.Fatalf("watch printed %s, want only events of chat %s", line, chatID)
			}
			if passing.Kind == kind {
				return
			}
		case <-timeout:
			t.Fatalf("watch printed no %s", kind)
		}
	}
}

func traceComplete(o *operator, messageID string) error {
	trace := ask[struct {
		Stored *struct{ ChatID string }
		Events []struct {
			Stream    string
			Consumers []struct {
				Name, State string
				Attempts    int
			}
		}
	}](o, "trace", messageID)
	missing := map[string]bool{"SENDS dispatcher": true, "REPLIES recorder": true, "REPLIES socket-gateway": true}
	for _, e := range trace.Events {
		for _, c := range e.Consumers {
			if c.State == "acknowledged" && c.Attempts > 0 {
				delete(missing, e.Stream+" "+c.Name)
			}
		}
	}
	if trace.Stored == nil || len(missing) > 0 {
		return fmt.Errorf("got %+v, want it stored, and acknowledged by %v as well", trace, missing)
	}
	return nil
}

// TestParleyctlDeadLetters replays a malformed event: only the consumer that it was replayed for gives it up again.
func TestParleyctlDeadLetters(t *testing.T) {
	s := commonStandalone(t)
	deadLetters(t, newOperator(t, s), s.NATSURL)
}

func deadLetters(t *testing.T, o *operator, natsURL string) {
	t.Helper()
	nc, err := nats.Connect(natsURL)
	check(t, err)
	defer nc.Close()
	_, err = nc.Request(subject.VisitorMessage("nobody", "nothing"), []byte("no JSON"), limit) // the stream acknowledges
	check(t, err)
	type letter struct {
		Sequence                  int
		Subject, Consumer, Reason string
	}
	mine := func() map[string]letter {
		found := map[string]letter{}
		for _, l := range ask[[]letter](o, "dead", "list", "--stream", "INBOUND", "--reason", "malformed") {
			if l.Subject == subject.VisitorMessage("nobody", "nothing") {
				found[l.Consumer] = l
			}
		}
		return found
	}
	eventually(t, "recorder, bot and webhooks give up", func() error {
		if found := mine(); len(found) != 3 {
			return fmt.Errorf("got %+v", found)
		}
		return nil
	})
	before := mine()
	o.run("dead", "replay", fmt.Sprint(before["recorder"].Sequence))
	eventually(t, "the recorder gives up again", func() error {
		if now := mine(); now["recorder"].Sequence <= before["recorder"].Sequence || now["bot"] != before["bot"] {
			return fmt.Errorf("got %+v", now)
		}
		return nil
	})
	o.run("dead", "drop", "--all", "--stream", "INBOUND", "--reason", "malformed", "--yes")
	if left := mine(); len(left) != 0 {
		t.Errorf("got %+v, want none left", left)
	}
}
