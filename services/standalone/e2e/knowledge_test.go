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

// citingModel cites the first passage, writes the same words for each search, and keeps what it was told.
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
	told := asked.Messages[0].Content
	words := []string{"parcel returned ", "days"}
	if !strings.HasPrefix(told, "You help to search") {
		m.mu.Lock()
		m.system = append(m.system, told)
		m.mu.Unlock()
		words = []string{"You may ", "return it ", "[", "1] or ", "not [4]."}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, word := range words {
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

// documentBot gives a company an application whose model answers from documents, with settings of that.
func (o *operator) documentBot(name, modelURL, knowledge string) (company, app, connection string) {
	company = o.create("companies", "create", "--name", name)
	app = o.create("applications", "create", "--company", company, "--name", "Shop", "--bot-name", "Nora")
	connection = o.create("connections", "create", "--company", company, "--name", "Models", "--url", modelURL)
	o.run("bots", "draft", app, "--set", o.write("bot.json", fmt.Sprintf(
		`{"kind":"model","model":{"connectionId":%q,"model":"small","prompt":"Be kind.","knowledge":%s}}`,
		connection, knowledge)))
	o.run("bots", "publish", app)
	return company, app, connection
}

// write writes a file for parleyctl.
func (o *operator) write(name, text string) string {
	file := filepath.Join(o.t.TempDir(), name)
	check(o.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestKnowledge lets a model answer from the documents of its company: it gets the passage that fits, by its words or by
// those that the model searches with, and none of another company; the visitor reads the citation with its link, and a
// changed document is found at once.
func TestKnowledge(t *testing.T) {
	s := commonStandalone(t)
	o := newOperator(t, s)
	m := &citingModel{}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	company, app, _ := o.documentBot("Readers", server.URL, `{"passages":2}`)
	other := o.create("companies", "create", "--name", "Others")
	o.create("documents", "add", "--company", other, "--file",
		o.write("foreign.md", "# Returns\n\nA parcel of another company may be returned never."))
	address := "https://shop.example.com/returns"
	document := o.create("documents", "add", "--company", company, "--title", "Shop", "--address", address, "--file",
		o.write("shop.md", "# Shipping\n\nParcels leave at noon.\n\n# Returns\n\nA parcel may be returned for thirty days.\n"))

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
	ask("Until when do you take something back?", "for thirty days")
	o.run("documents", "update", document, "--title", "Shop", "--address", address, "--file",
		o.write("shop.md", "# Returns\n\nA parcel may be returned for sixty days.\n"))
	ask("And how many days for returning parcels?", "for sixty days")
}
