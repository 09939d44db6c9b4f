package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/nemesis"
)

// browserTab is an official client of a visitor in one tab of a browser. As docs/browser-client.md asks for, it loads
// the history when it has connected without a recovered session.
//
// It begins with openTab and ends with close. One goroutine reads the client's events.
type browserTab struct {
	*socket
	name  string
	of    *guest
	ended chan struct{}
	draft reading // of the goroutine that reads: what the bot is writing

	mu     sync.Mutex // guards the rest
	online bool
	seen   []record // since it last connected anew, in the order of their arrival
	last   string   // id of the newest message that it has received
}

// seenByWriter is how many of the newest messages of a client a write names.
const seenByWriter = 5

// reconnectPause is how long a page waits before it connects a client again that has given up.
const reconnectPause = 300 * time.Millisecond

// openTab opens a client, or one of version 2 if legacy is set: it recovers no session, and so loads at each connect.
func (g *guest) openTab(t *testing.T, number int, legacy bool, transports []string) *browserTab {
	t.Helper()
	open := openSocket
	if legacy {
		open = openLegacySocket
	}
	b := &browserTab{
		socket: open(t, g.world.SocketURLs[0], g.token, transports...),
		name:   fmt.Sprintf("%s/%d", g.name, number),
		of:     g,
		ended:  make(chan struct{}),
		draft:  reading{broken: true}, // faults may lose parts
	}
	go b.read(t)
	return b
}

// leave closes the client, as a visitor closes the tab: nothing is owed to it any more.
func (b *browserTab) leave(t *testing.T) {
	t.Helper()
	b.close(t)
	b.of.world.record.AddConnect(nemesis.Connect{
		Client: b.name, Actor: b.of.name, ChatID: b.of.chatID, At: time.Now(), Gone: true,
	})
}

// close closes the client.
func (b *browserTab) close(t *testing.T) {
	t.Helper()
	b.socket.of.command(t, map[string]any{"op": "close", "id": b.id})
	<-b.ended
}

// drop ends the client's connection; reconnect brings it back, with its session.
func (b *browserTab) drop(t *testing.T) {
	t.Helper()
	b.socket.of.command(t, map[string]any{"op": "drop", "id": b.id})
}

func (b *browserTab) reconnect(t *testing.T) {
	t.Helper()
	b.socket.of.command(t, map[string]any{"op": "reconnect", "id": b.id})
}

// read records the client's events until it is closed.
func (b *browserTab) read(t *testing.T) {
	defer close(b.ended)
	for e := range b.events {
		b.note(e)
		switch {
		case e.Kind == "connect":
			b.connected(e.Recovered)
		case e.Kind == "connect_error" && !e.Active, e.Kind == "disconnect" && e.Message == "io server disconnect":
			time.AfterFunc(reconnectPause, func() { b.reconnectUnlessClosed(t) })
		case e.Kind == "event" && e.Event == "message":
			b.receive(t, e.Args[0])
		case e.Kind == "event" && e.Event == "message.part":
			b.follow(t, e.Args[0])
		case e.Kind == "closed":
			return
		}
	}
}

// note notes whether the client is connected.
func (b *browserTab) note(e clientEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e.Kind {
	case "connect":
		b.online = true
	case "disconnect", "closed":
		b.online = false
	}
}

// isOnline reports whether the client is connected.
func (b *browserTab) isOnline() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.online
}

// nudgePause is how long a client may take to connect before its visitor tries it again.
const nudgePause = 10 * time.Second

// awaitOnline waits until the client is connected. The visitor tries again now and then: a client of which the
// connection was dropped while it connected does not do so by itself.
func (b *browserTab) awaitOnline(t *testing.T, deadline time.Time) {
	t.Helper()
	for !b.isOnline() && time.Now().Before(deadline) {
		until(time.Now().Add(nudgePause), b.isOnline)
		if !b.isOnline() {
			t.Logf("%s is not connected", b.name)
			b.reconnect(t)
		}
	}
	if !b.isOnline() {
		b.of.world.breach(ruleRecovers, "%s does not connect", b.name)
	}
}

func (b *browserTab) reconnectUnlessClosed(t *testing.T) {
	select {
	case <-b.ended:
	default:
		b.reconnect(t)
	}
}

// connected notes a connect, with the history that the page loads if the session is a new one.
func (b *browserTab) connected(recovered bool) {
	note := nemesis.Connect{
		Client: b.name, Actor: b.of.name, ChatID: b.of.chatID, At: time.Now(), Recovered: recovered,
	}
	if !recovered {
		history := b.of.loadHistory()
		if history != nil { // otherwise the run ended before it had loaded
			note.Loaded = []string{}
		}
		for _, r := range history {
			note.Loaded = append(note.Loaded, r.ID)
		}
		b.mu.Lock()
		b.seen = history
		b.mu.Unlock()
	}
	b.of.world.record.AddConnect(note)
}

func (b *browserTab) receive(t *testing.T, argument json.RawMessage) {
	var d delivery
	if err := json.Unmarshal(argument, &d); err != nil {
		t.Errorf("%s: decoding %s: %v", b.name, argument, err)
		return
	}
	b.of.world.record.AddDelivery(nemesis.Delivery{
		Client: b.name, ChatID: d.ChatID, MessageID: d.ID, Text: spoken(d.record), At: time.Now(),
	})
	b.replaceDraft(d.ID)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = d.ID
	if !slices.ContainsFunc(b.seen, func(r record) bool { return r.ID == d.ID }) {
		b.seen = append(b.seen, d.record)
	}
}

// newest returns the ids of the newest messages that the client has.
func (b *browserTab) newest() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.seen[max(0, len(b.seen)-seenByWriter):] {
		ids = append(ids, r.ID)
	}
	return ids
}

// shown returns what the page shows: the history that it loaded last, and what it received since.
func (b *browserTab) shown() []record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

// newestReceived returns the id of the newest message that arrived over the socket.
func (b *browserTab) newestReceived() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// spoken returns the text of a message, or the caption of a file.
func spoken(r record) string {
	var data struct{ Text, Caption string }
	_ = json.Unmarshal(r.Data, &data) // other types have neither
	return data.Text + data.Caption
}

// finishReason returns why the bot's answer ended early; empty: it did not.
func finishReason(r record) string {
	var data struct{ FinishReason string }
	_ = json.Unmarshal(r.Data, &data) // other types have none
	return data.FinishReason
}

// loadHistory loads the whole history, and tries again until it has it.
func (g *guest) loadHistory() []record {
	for {
		history, err := g.tryHistory()
		if err == nil {
			return history
		}
		select {
		case <-g.world.over.Done():
			return nil
		case <-time.After(reconnectPause):
		}
	}
}

// tryHistory loads the whole history, page by page.
func (g *guest) tryHistory() (all []record, err error) {
	const fullPage = 1000
	query := ""
	for {
		got, err := g.api.try(http.MethodGet, "/message"+query, nil, bearer(g.token))
		if err != nil {
			return nil, err
		}
		if got.Status != http.StatusOK {
			return nil, &refusedError{"GET /message", got.Status, got.Body}
		}
		var page []record
		if err := json.Unmarshal([]byte(got.Body), &page); err != nil {
			return nil, err
		}
		all = append(page, all...)
		if len(page) < fullPage {
			return all, nil
		}
		query = fmt.Sprintf("?limit=%d&before=%s", fullPage, all[0].ID)
	}
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
