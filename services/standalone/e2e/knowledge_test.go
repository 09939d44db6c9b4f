package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// citingModel cites the first passage, and keeps what it was told.
type citingModel struct {
	mu     sync.Mutex
	system []string
}

func (m *citingModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct{ Role, Content string }
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.system = append(m.system, asked.Messages[0].Content)
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for _, word := range []string{"You may ", "return it ", "[", "1] or ", "not [4]."} {
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
	}
	fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// last returns the instructions of the last question.
func (m *citingModel) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.system[len(m.system)-1]
}

// TestKnowledge lets a model answer from the documents of its company: it gets the passage that fits, and none of another
// company; the visitor reads the citation with its link, and a changed document is found at once.
func TestKnowledge(t *testing.T) {
	s := commonStandalone(t)
	o := newOperator(t, s)
	m := &citingModel{}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		check(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	company := o.create("companies", "create", "--name", "Readers")
	app := o.create("applications", "create", "--company", company, "--name", "Shop", "--bot-name", "Nora")
	other := o.create("companies", "create", "--name", "Others")
	o.create("documents", "add", "--company", other, "--file",
		write("foreign.md", "# Returns\n\nA parcel of another company may be returned never."))
	address := "https://shop.example.com/returns"
	document := o.create("documents", "add", "--company", company, "--title", "Shop", "--address", address, "--file",
		write("shop.md", "# Shipping\n\nParcels leave at noon.\n\n# Returns\n\nA parcel may be returned for thirty days.\n"))
	connection := o.create("connections", "create", "--company", company, "--name", "Models", "--url", server.URL)
	o.run("bots", "draft", app, "--set", write("bot.json", fmt.Sprintf(
		`{"kind":"model","model":{"connectionId":%q,"model":"small","prompt":"Be kind.","knowledge":{"passages":2}}}`, connection)))
	o.run("bots", "publish", app)

	there := s.place
	there.AppID, there.CompanyID = app, company
	v := register(t, there, there.widgetAPI(t))
	socket := connected(t, s.SocketURLs[0], v.token, "websocket")
	ask := func(question, want string) {
		t.Helper()
		v.write(t, question)
		var read reading
		text := "You may return it [1] or not.\n\n[1] [Shop › Returns](" + address + ")"
		if got, _ := socket.finish(t, &read); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		told := m.last()
		if !strings.Contains(told, "Be kind.") || !strings.Contains(told, want) || strings.Contains(told, "another company") {
			t.Errorf("got the instructions %q, want %q in them, and nothing of another company", told, want)
		}
	}
	ask("How long may I return a parcel?", "for thirty days")
	o.run("documents", "update", document, "--title", "Shop", "--address", address, "--file",
		write("shop.md", "# Returns\n\nA parcel may be returned for sixty days.\n"))
	ask("And how many days for returning parcels?", "for sixty days")
}
