package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/nemesis"
)

// nemesisEndpoint is a company's server that receives webhooks and records them.
type nemesisEndpoint struct {
	dependency
	id      string
	ordered bool
	record  *nemesis.Record

	mu  sync.Mutex
	got map[string]bool // the events, by their header webhook-id
}

// newEndpoint registers an endpoint, and returns when its first webhook has arrived. Its webhooks come in order, but
// not with FerretDB, which has no index for the queue of an ordered endpoint and is busy with it for minutes.
func (w *nemesisWorld) newEndpoint(t *testing.T) *nemesisEndpoint {
	t.Helper()
	e := &nemesisEndpoint{record: w.record, ordered: w.units["mongodb"] == nil, got: map[string]bool{}}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	e.id = w.operator(t).create(
		"webhooks", "create", "--company", w.CompanyID, "--url", server.URL, fmt.Sprint("--ordered=", e.ordered),
		"--events", "message.received,message.status",
	)
	v := register(t, w.place, w.widget)
	eventually(t, "the endpoint is known", func() error {
		v.write(t, "Is the endpoint known?")
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.got) == 0 {
			return fmt.Errorf("got no webhook")
		}
		return nil
	})
	return e
}

func (e *nemesisEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if !e.admit(w, r) {
		return
	}
	var body webhookBody
	if json.Unmarshal(text, &body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := r.Header.Get("webhook-id")
	e.note(body, id)
	w.WriteHeader(http.StatusNoContent)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got[id] = true
}

// webhookBody is what the endpoint reads of an event.
type webhookBody struct {
	Type string
	Data struct {
		Message   record
		MessageID string
		Status    string
	}
}

// note records an event.
func (e *nemesisEndpoint) note(body webhookBody, webhookID string) {
	switch body.Type {
	case "message.received":
		e.record.AddWebhook(nemesis.Webhook{
			Endpoint: e.id, Type: body.Type, WebhookID: webhookID,
			MessageID: body.Data.Message.ID, Text: spoken(body.Data.Message), At: time.Now(),
		})
	case "message.status":
		e.record.AddStatus(nemesis.Status{
			MessageID: body.Data.MessageID, Name: body.Data.Status, At: time.Now(),
			Source: "webhook", ReportID: webhookID, Unordered: !e.ordered,
		})
	}
}

// count counts the events that have arrived.
func (e *nemesisEndpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.got)
}
