package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/idempotency"
)

// member is a visitor, with a client that is connected or away.
type member struct {
	*visitor
	transports []string
	chatID     string
	online     bool // the client was connected when the power failed
	client     *socket

	mu       sync.Mutex
	attempts []*attempt // in the order of their beginnings, two at a time: the visitor's and the company's

	// What the client has: ids.
	loaded    map[string]bool // the history when it connected anew
	seen      []string        // that, and what it received since
	connects  int
	recovered bool // it never connected anew
}

// attempt is a request that may be sent more than once under one key.
type attempt struct {
	company bool // from the company; otherwise from the visitor
	text    string
	key     string
	id      string // of the message; empty: not answered yet
}

// side returns the attempt's side as the function side does.
func (a *attempt) side() string {
	if a.company {
		return "company "
	}
	return "visitor "
}

// refusedError is an answer that is no success.
type refusedError struct {
	request string
	status  int
	body    string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s: got %d %s", e.request, e.status, e.body)
}

// join registers a visitor, and connects a client until the test ends. The chat's id is known then.
func (w *cutWorld) join(t *testing.T, transports []string) *member {
	t.Helper()
	m := &member{visitor: register(t, w.place, w.widget), transports: transports, online: true}
	m.client = connected(t, w.SocketURLs[0], m.token, transports...)
	m.connects, m.recovered = 1, true
	check(t, w.try(m, w.attempt(m, false)))
	m.read(t, func() bool { return m.chatID != "" })
	return m
}

// attempt begins an attempt.
func (w *cutWorld) attempt(m *member, company bool) *attempt {
	a := &attempt{company: company, text: fmt.Sprintf("number %d.", w.texts.Add(1)), key: uuid.NewString()}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempts = append(m.attempts, a)
	return a
}

// try sends an attempt, again or for the first time, and notes the message's id.
func (w *cutWorld) try(m *member, a *attempt) error {
	key := header{"Idempotency-Key", a.key}
	body := map[string]any{"type": "TEXT", "data": map[string]string{"text": a.text}}
	api, path, success, credential := w.widget, "/message", http.StatusCreated, bearer(m.token)
	if a.company {
		body["chatId"] = m.chatID
		api, path, success, credential = w.company, "/message/send", http.StatusOK, accessToken(w.AccessToken)
	}
	got, err := api.try(http.MethodPost, path, body, credential, key)
	if err != nil {
		return err
	}
	if got.Status != success {
		return &refusedError{"POST " + path, got.Status, got.Body}
	}
	var answer struct{ ID, MessageID string }
	if err := json.Unmarshal([]byte(got.Body), &answer); err != nil {
		return err
	}
	id := answer.ID + answer.MessageID // one of them
	if a.id != "" && a.id != id {
		return fmt.Errorf("POST %s again: got the message %s, want that of the first answer, %s", path, id, a.id)
	}
	if a.id == "" {
		w.tally.accepted.Add(1)
	}
	a.id = id
	return nil
}

// write writes to a chat until ctx is done or the power fails. Without power, requests get no answer, or 503.
func (w *cutWorld) write(ctx context.Context, t *testing.T, m *member, company bool) {
	for ctx.Err() == nil {
		err := w.try(m, w.attempt(m, company))
		if refused, ok := errors.AsType[*refusedError](err); ok {
			w.tally.refused.Add(1)
			if refused.status != http.StatusServiceUnavailable {
				t.Errorf("without power: %v, want 503", refused)
			}
		}
		if err != nil {
			return
		}
	}
}

// leave closes the client.
func (m *member) leave(t *testing.T) {
	t.Helper()
	m.online = false
	m.client.of.command(t, map[string]any{"op": "close", "id": m.client.id})
	m.client.await(t, "closed")
}

// comeBack waits until the client is connected again.
func (m *member) comeBack(t *testing.T, w *cutWorld) {
	t.Helper()
	if !m.online {
		m.client = openSocket(t, w.SocketURLs[0], m.token, m.transports...)
		m.client.await(t, "connect")
		m.load(t)
		return
	}
	if w.continues {
		return // it was not disconnected
	}
	before := m.connects
	m.read(t, func() bool { return m.connects > before })
}

// read reads the client's events until done returns true.
func (m *member) read(t *testing.T, done func() bool) {
	t.Helper()
	if !m.readUntil(t, time.After(limit), done) {
		t.Fatalf("the client on %v: not in time; it has received %d messages", m.transports, len(m.seen))
	}
}

// readUntil returns whether done returned true in time.
func (m *member) readUntil(t *testing.T, timeout <-chan time.Time, done func() bool) bool {
	t.Helper()
	for !done() {
		select {
		case e := <-m.client.events:
			m.receive(t, e)
		case <-timeout:
			return false
		}
	}
	return true
}

func (m *member) receive(t *testing.T, e clientEvent) {
	t.Helper()
	switch {
	case e.Kind == "connect":
		m.connects++
		if !e.Recovered {
			m.load(t)
		}
	case e.Kind == "event" && e.Event == "message":
		var d delivery
		check(t, json.Unmarshal(e.Args[0], &d))
		m.chatID = d.ChatID
		if !m.loaded[d.ID] {
			m.seen = append(m.seen, d.ID)
		}
	}
}

// load loads the history, as a page does whose client has connected anew.
func (m *member) load(t *testing.T) {
	t.Helper()
	m.recovered = false
	m.seen, m.loaded = nil, map[string]bool{}
	eventually(t, "the history of a client that has connected anew", func() error {
		got, err := m.api.try(http.MethodGet, "/message", nil, bearer(m.token))
		if err != nil {
			return err
		}
		if got.Status != http.StatusOK {
			return &refusedError{"GET /message", got.Status, got.Body}
		}
		var history []record
		if err := json.Unmarshal([]byte(got.Body), &history); err != nil {
			return err
		}
		for _, r := range history {
			m.loaded[r.ID] = true
			m.seen = append(m.seen, r.ID)
		}
		return nil
	})
}

// retry sends all attempts again that were not answered, and some of the last ones that were. The others must have had
// their effect without. An attempt that the power failure interrupted is in progress until its lease ends.
func (m *member) retry(t *testing.T, w *cutWorld) {
	t.Helper()
	for n, a := range m.attempts {
		again := n >= len(m.attempts)-10 && n/2%2 == 0
		if a.id != "" && !again {
			continue
		}
		err := w.try(m, a)
		for end := time.Now().Add(idempotency.Lease + limit); err != nil && time.Now().Before(end); err = w.try(m, a) {
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("a retry: %v", err)
		}
	}
}

// writeMore writes a little with the client connected.
func (m *member) writeMore(t *testing.T, w *cutWorld) {
	t.Helper()
	for n := range 6 {
		a := w.attempt(m, n%2 == 1)
		eventually(t, "a message after the cut", func() error { return w.try(m, a) })
	}
}
