package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestBots gives an application a bot of its own, while another application keeps the operator's: a server, a language
// model, and the server again. Each publication is in force without a restart.
func TestBots(t *testing.T) {
	s := commonStandalone(t)
	o := newOperator(t, s)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"messages":[{"type":"TEXT","data":{"text":"from the server"}}]}`)
	}))
	t.Cleanup(hook.Close)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-acme" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"from the model"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)

	company := o.create("companies", "create", "--name", "Bots")
	app := o.create("applications", "create", "--company", company, "--name", "Shop", "--bot-name", "Nora")
	key := filepath.Join(t.TempDir(), "key")
	check(t, os.WriteFile(key, []byte("sk-acme\n"), 0o600))
	connection := o.create(
		"connections", "create", "--company", company, "--name", "Models", "--url", model.URL+"/v1", "--key-file", key,
	)
	publish := func(settings string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "bot.json")
		check(t, os.WriteFile(file, []byte(settings), 0o600))
		o.run("bots", "draft", app, "--set", file)
		o.run("bots", "publish", app)
	}
	there := s.place
	there.AppID, there.CompanyID = app, company
	v := register(t, there, there.widgetAPI(t))
	// answers asks until the answer is the wanted one: a publication is in force within a second.
	answers := func(want string) {
		t.Helper()
		eventually(t, "the bot says: "+want, func() error {
			asked := v.write(t, "Who are you?")
			var reply string
			eventually(t, "an answer", func() error {
				history := v.history(t)
				last := history[len(history)-1]
				if !last.IsFromSupport || last.CreatedAt < asked.CreatedAt {
					return fmt.Errorf("got %+v, want an answer", last)
				}
				reply = last.member(t, "text")
				return nil
			})
			if reply != want {
				return fmt.Errorf("got %q", reply)
			}
			return nil
		})
	}
	publish(fmt.Sprintf(`{"kind":"webhook","webhook":{"url":%q}}`, hook.URL))
	answers("from the server")
	publish(fmt.Sprintf(`{"kind":"model","model":{"connectionId":%q,"model":"small"}}`, connection))
	answers("from the model")
	o.run("bots", "publish", app, "--version", "1")
	answers("from the server")

	other := register(t, s.place, s.widgetAPI(t))
	socket := connected(t, s.SocketURLs[0], other.token, "websocket")
	other.write(t, "hello")
	if d := socket.next(t); d.member(t, "text") == "from the server" {
		t.Errorf("got %+v, want another application's bot unchanged", d)
	}
}
