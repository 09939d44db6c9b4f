package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/opstest"
)

// unprocessed is the number of sends that are lost before the processor has seen them.
const unprocessed = 20

// TestLostTail restores the store directory of nats-server as it was some replies earlier: the streams use the lost
// sequences again. Every client gets each new reply once, in order, however it connects; what the store had stays in
// the histories; what only the streams had is sent by a retry or, of visitors, published again.
//
// LOST is the number of lost replies, NEW that of new ones; the long form has 520 and 300.
func TestLostTail(t *testing.T) {
	needs.Packages(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	lost, fresh := uint64(60), uint64(80)
	if longForm() {
		lost, fresh = 520, 300
	}
	lost, fresh = setting(t, "LOST", lost), setting(t, "NEW", fresh)
	t.Run("nats-server alone", func(t *testing.T) { newLossWorld(t).lostTail(t, int(lost), int(fresh), false) })
	t.Run("the whole machine", func(t *testing.T) { newLossWorld(t).lostTail(t, int(lost), int(fresh), true) })
}

// lossWorld is a deployment whose services are started again when they end, as a supervisor does.
type lossWorld struct {
	*deployment
	supervised map[string]*supervised
	company    *api
	session    string // of a user of the panel
	people     []*correspondent
	number     int // of the last text

	away, stays           []*listener // clients that drop their connections, and those that do not
	panelAway, panelStays *panelStream
}

// correspondent is a visitor, with everything that was said and all clients.
type correspondent struct {
	*visitor
	chatID   string
	accepted []string // ids of the company's messages, in the order of their answers
	written  []string // texts of the visitor's messages
	clients  []*listener
}

func newLossWorld(t *testing.T) *lossWorld {
	t.Helper()
	w := &lossWorld{deployment: newDeployment(t, 2), supervised: map[string]*supervised{}}
	w.add(t, "panel")
	w.settings = []string{"WIDGET_URL=http://" + w.addr["widget-api"], "CLIENT_URL=http://" + w.addr["client-api"]}
	for _, engine := range []string{"seed", "nats", "redis"} {
		w.start(t, engine)
	}
	w.PanelURL = "http://" + w.addr["panel"]
	w.superviseAll(t)
	w.awaitReady(t, http.StatusOK, w.services...)
	w.company = w.clientAPI(t)
	stored := openStore(t, w.place)
	w.session = putSession(t, stored, putUser(t, stored, account.Owner, w.CompanyID))
	widget := w.widgetAPI(t)
	for range 3 {
		c := &correspondent{visitor: register(t, w.place, widget)}
		c.chatID = chatOf(t, w.place, c.visitor)
		w.people = append(w.people, c)
	}
	return w
}

// supervised is a service that is started again whenever it ends.
type supervised struct {
	stopping chan struct{}
	ended    chan error
}

func (w *lossWorld) superviseAll(t *testing.T) {
	t.Helper()
	for _, name := range w.services {
		w.supervise(t, name)
	}
}

func (w *lossWorld) supervise(t *testing.T, name string) {
	t.Helper()
	path, settings, args := w.command(t, name)
	s := &supervised{stopping: make(chan struct{}), ended: make(chan error, 1)}
	w.supervised[name] = s
	go func() { s.ended <- s.run(func() (*child, error) { return spawn(name, settings, path, args...) }) }()
	w.t.Cleanup(func() {
		if w.supervised[name] == s {
			w.stop(t, name)
		}
	})
}

// run starts a process until it is told to stop it. A process that ends again and again is an error.
func (s *supervised) run(start func() (*child, error)) error {
	var last *tail
	for range 10 {
		c, err := start()
		if err != nil {
			return err
		}
		last = c.stderr
		select {
		case <-c.ended:
		case <-s.stopping:
			code, err := c.stop()
			if err == nil && code != 0 {
				err = fmt.Errorf("%s stopped with code %d:\n%s", c.name, code, c.stderr)
			}
			return err
		}
	}
	return fmt.Errorf("it ends again and again:\n%s", last)
}

// stop stops a service for good.
func (w *lossWorld) stop(t *testing.T, name string) {
	t.Helper()
	s := w.supervised[name]
	delete(w.supervised, name)
	close(s.stopping)
	if err := <-s.ended; err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// keep stops nats-server, keeps a copy of its store directory and starts it again.
func (w *lossWorld) keep(t *testing.T) (kept string) {
	t.Helper()
	kept = filepath.Join(t.TempDir(), "kept")
	_, err := w.run["nats"].stop()
	check(t, err)
	check(t, os.CopyFS(kept, os.DirFS(w.storeDir())))
	w.start(t, "nats")
	return kept
}

func (w *lossWorld) storeDir() string { return filepath.Join(w.dir, "nats") }

// restore brings the copy back, with the processor stopped. If everything stops with nats-server, nothing that a
// process or Redis knows is left.
func (w *lossWorld) restore(t *testing.T, kept string, everything bool) {
	t.Helper()
	engines := []string{"nats"}
	if everything {
		engines = []string{"nats-sync", "redis", "nats"}
		for name := range w.supervised {
			w.stop(t, name)
		}
	}
	for _, name := range engines {
		check(t, w.run[name].kill())
	}
	check(t, os.RemoveAll(w.storeDir()))
	check(t, os.CopyFS(w.storeDir(), os.DirFS(kept)))
	if everything {
		delete(w.run, "nats-sync") // start starts it with nats
		w.start(t, "redis")
	}
	w.start(t, "nats")
	for _, name := range w.services {
		if w.supervised[name] == nil {
			w.supervise(t, name)
		}
	}
}

func (w *lossWorld) lostTail(t *testing.T, lost, fresh int, everything bool) {
	w.connect(t)
	kept := w.keep(t)
	waiting := w.lose(t, lost)
	w.restore(t, kept, everything)
	early := w.send(t, fresh/4) // while processes notice the loss and start again
	w.comeBack(t)
	all := slices.Concat(w.stays, w.away, w.join(t))
	w.wantLive(t, all, w.send(t, fresh/2))
	w.wantReset(t, w.panelAway)
	w.wantReset(t, w.panelStays)
	w.wantRecovered(t, all, fresh-fresh/2-fresh/4)
	w.wantRetried(t, waiting)
	w.awaitHistories(t)
	w.wantComplete(t)
	w.wantTold(t)
	t.Logf(
		"lost %d replies, and %d sends that were not processed; %d clients have %d new replies, %d of them sent while "+
			"the services noticed the loss", lost, len(waiting), len(all), fresh, len(early),
	)
}

// connect connects the clients and the panel, and fills the histories.
func (w *lossWorld) connect(t *testing.T) {
	t.Helper()
	w.away, w.stays = w.join(t), w.join(t)
	w.panelAway, w.panelStays = w.follow(t, ""), w.follow(t, "")
	w.panelAway.await(t, "ready")
	w.panelStays.await(t, "ready")
	w.wantLive(t, slices.Concat(w.away, w.stays), w.send(t, 9))
	w.write(t)
	w.awaitHistories(t)
}

// lose sends the replies that will be lost, and with the processor stopped messages that it will never see, which are
// returned. Some of the clients drop their connections in the middle of it.
func (w *lossWorld) lose(t *testing.T, lost int) (waiting []*outgoing) {
	t.Helper()
	first := w.send(t, lost/2)
	w.wantLive(t, w.away, first)
	for _, l := range w.away {
		l.drop(t)
	}
	w.write(t)
	rest := w.send(t, lost-lost/2)
	w.wantLive(t, w.stays, slices.Concat(first, rest))
	w.awaitHistories(t)
	for _, m := range rest {
		w.panelAway.awaitMessage(t, m.id)
		w.panelStays.awaitMessage(t, m.id)
	}
	w.panelAway.stop()
	w.stop(t, "processor")
	waiting = w.send(t, unprocessed)
	w.write(t)
	return waiting
}

// comeBack waits until the services and the clients are back. No client may resume a session of the lost epoch.
func (w *lossWorld) comeBack(t *testing.T) {
	t.Helper()
	w.awaitReady(t, http.StatusOK, w.services...)
	for _, l := range w.stays {
		l.awaitConnect(t)
	}
	for _, l := range w.away {
		l.reconnect(t)
	}
	w.panelStays.stop() // it has ended with the panel's process
	for _, l := range slices.Concat(w.stays, w.away) {
		if l.recovered {
			t.Errorf("%s: got a recovered session of the lost epoch, want a new one", l.name)
		}
	}
}

// wantRecovered checks that sessions of the new epoch are recovered: of clients, and of the panel.
func (w *lossWorld) wantRecovered(t *testing.T, all []*listener, missed int) {
	t.Helper()
	panel := w.follow(t, "")
	panel.await(t, "ready")
	panel.stop()
	for _, l := range w.away {
		l.drop(t)
	}
	sent := w.send(t, missed)
	for _, l := range w.away {
		l.reconnect(t)
		if !l.recovered {
			t.Errorf("%s: got a new session, want the recovered one", l.name)
		}
	}
	w.wantLive(t, all, sent)
	w.wantCaughtUp(t, panel, sent)
}

// outgoing is a company's message.
type outgoing struct {
	to            *correspondent
	text, key, id string
}

// send sends messages to the correspondents in turn, each until it is accepted.
func (w *lossWorld) send(t *testing.T, count int) (sent []*outgoing) {
	t.Helper()
	for n := range count {
		w.number++
		m := &outgoing{to: w.people[n%len(w.people)], text: fmt.Sprintf("number %d.", w.number), key: uuid.NewString()}
		eventually(t, "a send", func() error { return w.try(m) })
		m.to.accepted = append(m.to.accepted, m.id)
		sent = append(sent, m)
	}
	return sent
}

func (w *lossWorld) try(m *outgoing) error {
	_, err := w.post(m)
	return err
}

// post sends a message, again or for the first time, and notes its id.
func (w *lossWorld) post(m *outgoing) (replayed bool, err error) {
	body := map[string]any{"type": "TEXT", "chatId": m.to.chatID, "data": map[string]string{"text": m.text}}
	key := header{"Idempotency-Key", m.key}
	got, err := w.company.try(http.MethodPost, "/message/send", body, accessToken(w.AccessToken), key)
	if err != nil {
		return false, err
	}
	if got.Status != http.StatusOK {
		return false, fmt.Errorf("got %d %s", got.Status, got.Body)
	}
	var answer sent
	if err := json.Unmarshal([]byte(got.Body), &answer); err != nil {
		return false, err
	}
	if m.id != "" && m.id != answer.MessageID {
		return false, fmt.Errorf("got the message %s, want that of the first answer, %s", answer.MessageID, m.id)
	}
	m.id = answer.MessageID
	return got.Header.Get("Idempotency-Replayed") == "true", nil
}

// write lets every visitor write.
func (w *lossWorld) write(t *testing.T) {
	t.Helper()
	for _, c := range w.people {
		w.number++
		text := fmt.Sprintf("number %d.", w.number)
		key := header{"Idempotency-Key", uuid.NewString()}
		eventually(t, "a visitor's message", func() error {
			body := map[string]any{"type": "TEXT", "data": map[string]string{"text": text}}
			got, err := c.api.try(http.MethodPost, "/message", body, bearer(c.token), key)
			if err == nil && got.Status != http.StatusCreated {
				err = fmt.Errorf("got %d %s", got.Status, got.Body)
			}
			return err
		})
		c.written = append(c.written, text)
	}
}

// awaitHistories waits until each history has every message once, with one answer of the bot to each of the visitor's.
func (w *lossWorld) awaitHistories(t *testing.T) {
	t.Helper()
	for _, c := range w.people {
		eventually(t, "the history", func() error { return c.missing(t) })
	}
}

// missing returns an error for a message that is not in the history exactly once.
func (c *correspondent) missing(t *testing.T) error {
	t.Helper()
	times, said := map[string]int{}, map[string]int{}
	for _, r := range c.history(t) {
		times[r.ID]++
		if !slices.Contains(c.accepted, r.ID) {
			text := r.member(t, "text")
			at := strings.Index(text, "number ")
			said[fmt.Sprint(r.IsFromSupport, text[max(at, 0):])]++
		}
	}
	for _, id := range c.accepted {
		if times[id] != 1 {
			return fmt.Errorf("the company's message %s is there %d times", id, times[id])
		}
	}
	for _, text := range c.written {
		if n := said["false"+text]; n != 1 {
			return fmt.Errorf("the visitor's %q is there %d times", text, n)
		}
		answers := 0
		for key, n := range said {
			if strings.HasPrefix(key, "true"+text) {
				answers += n
			}
		}
		if answers != 1 {
			return fmt.Errorf("the bot has answered %d times to %q", answers, text)
		}
	}
	return nil
}

// listener is an official client of a visitor. As docs/browser-client.md asks for, it loads the history when it has
// connected without a recovered session.
type listener struct {
	*socket
	of        *correspondent
	name      string
	connects  int
	recovered bool
	loaded    []string // ids in the last history
	live      []string // ids in the order of their arrival
	session   []string // of those, the ids since it last connected anew
	twice     []string // ids that arrived twice in a session
}

// join connects a client of each visitor, in turn to each gateway.
func (w *lossWorld) join(t *testing.T) (joined []*listener) {
	t.Helper()
	for n, c := range w.people {
		name := fmt.Sprintf("client %d of visitor %d", len(c.clients)+1, n+1)
		l := &listener{of: c, name: name}
		l.socket = openSocket(t, w.SocketURLs[n%len(w.SocketURLs)], c.token, "websocket")
		c.clients = append(c.clients, l)
		joined = append(joined, l)
		l.awaitConnect(t)
	}
	return joined
}

// drop cuts the connection as a bad network does; the client does not come back by itself.
func (l *listener) drop(t *testing.T) {
	t.Helper()
	l.socket.of.command(t, map[string]any{"op": "drop", "id": l.id})
	for dropped := false; !dropped; {
		dropped = l.receive(t).Kind == "disconnect"
	}
}

// reconnect brings a dropped client back, with its pid and offset.
func (l *listener) reconnect(t *testing.T) {
	t.Helper()
	l.socket.of.command(t, map[string]any{"op": "reconnect", "id": l.id})
	l.awaitConnect(t)
}

// awaitConnect waits until the client has connected once more than when it was last waited for.
func (l *listener) awaitConnect(t *testing.T) {
	t.Helper()
	for l.connects == 0 {
		l.receive(t)
	}
	l.connects = 0
}

// receive returns the next event.
func (l *listener) receive(t *testing.T) clientEvent {
	t.Helper()
	select {
	case e := <-l.events:
		l.note(t, e)
		return e
	case <-time.After(limit):
		t.Fatalf("%s: no event in time, after %d messages", l.name, len(l.live))
		return clientEvent{}
	}
}

func (l *listener) note(t *testing.T, e clientEvent) {
	t.Helper()
	switch {
	case e.Kind == "connect":
		l.connects++
		l.recovered = e.Recovered
		if !e.Recovered {
			l.session = nil
			l.load(t)
		}
	case e.Kind == "event" && e.Event == "message":
		var d delivery
		check(t, json.Unmarshal(e.Args[0], &d))
		if slices.Contains(l.session, d.ID) {
			l.twice = append(l.twice, d.ID)
		}
		l.session = append(l.session, d.ID)
		l.live = append(l.live, d.ID)
	}
}

// load loads the history. The Widget API may start at the same time.
func (l *listener) load(t *testing.T) {
	t.Helper()
	eventually(t, "the history", func() error {
		got, err := l.of.api.try(http.MethodGet, "/message", nil, bearer(l.of.token))
		if err == nil && got.Status != http.StatusOK {
			err = fmt.Errorf("got %d", got.Status)
		}
		var history []record
		if err == nil {
			err = json.Unmarshal([]byte(got.Body), &history)
		}
		l.loaded = nil
		for _, r := range history {
			l.loaded = append(l.loaded, r.ID)
		}
		return err
	})
}

// wantLive waits until the clients have received messages, each once and in order.
func (w *lossWorld) wantLive(t *testing.T, clients []*listener, messages []*outgoing) {
	t.Helper()
	for _, l := range clients {
		want := idsTo(l.of, messages)
		got := func() []string { return among(l.live, want) }
		for timeout := time.After(limit); len(got()) < len(want); {
			select {
			case e := <-l.events:
				l.note(t, e)
				continue
			case <-timeout:
			}
			break
		}
		if !slices.Equal(got(), want) {
			t.Errorf(
				"%s: got %d of %d new replies, or in another order: got %v, want %v",
				l.name, len(got()), len(want), got(), want,
			)
		}
	}
}

// idsTo returns the ids of the messages to a visitor.
func idsTo(c *correspondent, messages []*outgoing) (ids []string) {
	for _, m := range messages {
		if m.to == c {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// among returns those of the received ids that are wanted, in the order of their arrival.
func among(received, want []string) (ids []string) {
	for _, id := range received {
		if slices.Contains(want, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// wantComplete checks that each client has every message of the company, live or from the history, and got none twice
// in a session. A session of the new epoch may bring what one of the lost epoch has brought: its client loads the
// history, and merges by id.
func (w *lossWorld) wantComplete(t *testing.T) {
	t.Helper()
	for _, c := range w.people {
		for _, l := range c.clients {
			missing := func(id string) bool { return !slices.Contains(l.live, id) && !slices.Contains(l.loaded, id) }
			for slices.ContainsFunc(c.accepted, missing) {
				l.receive(t)
			}
			if len(l.twice) > 0 {
				t.Errorf("%s: got the messages %v twice", l.name, l.twice)
			}
		}
	}
}

// wantRetried sends messages again that were lost before they were processed: now they have an effect, and after that
// a retry is answered with the first answer.
func (w *lossWorld) wantRetried(t *testing.T, messages []*outgoing) {
	t.Helper()
	for _, m := range messages {
		replayed, err := w.post(m)
		if err != nil || replayed {
			t.Errorf("a retry of a lost send: got replayed %v and %v, want it sent", replayed, err)
		}
	}
	w.awaitHistories(t)
	for _, m := range messages {
		replayed, err := w.post(m)
		if err != nil || !replayed {
			t.Errorf("the next retry: got replayed %v and %v, want the first answer", replayed, err)
		}
	}
}

// wantTold checks that a gateway is ready, and names the lost messages.
func (w *lossWorld) wantTold(t *testing.T) {
	t.Helper()
	state, err := opstest.Read("http://" + w.ops[gatewayName(0)])
	check(t, err)
	told := func(text string) bool { return strings.HasPrefix(text, "stream REPLIES has lost its messages ") }
	if !state.AllUp() || !slices.ContainsFunc(state.Warnings, told) {
		t.Errorf("got the readiness %+v, want a warning of what REPLIES has lost", state)
	}
}

// panelStream is a browser of the panel that follows the company's chats.
type panelStream struct {
	*eventSource
	messages []string // ids
}

// follow opens an event stream after an event.
func (w *lossWorld) follow(t *testing.T, lastID string) *panelStream {
	t.Helper()
	return &panelStream{eventSource: openEvents(t, w.PanelURL+"/api/events", w.session, lastID)}
}

// await reads until an event of that name, and returns the names of all.
func (p *panelStream) await(t *testing.T, name string) (names []string) {
	t.Helper()
	names, there := p.readUntil(t, name)
	if !there {
		t.Fatalf("the panel's events: the stream has ended after %v", names)
	}
	return names
}

// readUntil is await for a stream that may end before; there is false then.
func (p *panelStream) readUntil(t *testing.T, name string) (names []string, there bool) {
	t.Helper()
	for {
		e, open := p.next(t)
		if !open {
			return names, false
		}
		names = append(names, e.name)
		if e.name == "message" {
			var of struct{ Message record }
			check(t, json.Unmarshal([]byte(e.data), &of))
			p.messages = append(p.messages, of.Message.ID)
		}
		if e.name == name {
			return names, true
		}
	}
}

func (p *panelStream) awaitMessage(t *testing.T, id string) {
	t.Helper()
	for !slices.Contains(p.messages, id) {
		p.await(t, "message")
	}
}

// wantReset checks that a browser that comes back from the lost epoch loads its pages, which have everything. A panel
// that was ready before it noticed a loss ends, with the stream; the browser comes back once more.
func (w *lossWorld) wantReset(t *testing.T, p *panelStream) {
	t.Helper()
	for range 2 {
		w.awaitReady(t, http.StatusOK, "panel")
		back := w.follow(t, p.lastID)
		names, ready := back.readUntil(t, "ready")
		if ready && names[0] != "reset" {
			t.Logf("the panel has not noticed the loss yet: %v", names)
			_, ready = back.readUntil(t, "the end")
		}
		back.stop()
		if ready {
			return
		}
	}
	t.Error("the panel: got no reset")
}

// wantCaughtUp checks that a browser of the new epoch gets what it has missed.
func (w *lossWorld) wantCaughtUp(t *testing.T, p *panelStream, missed []*outgoing) {
	t.Helper()
	back := w.follow(t, p.lastID)
	names := back.await(t, "ready")
	if slices.Contains(names, "reset") {
		t.Errorf("the panel: got %v, want no reset", names)
	}
	for _, c := range w.people {
		want := idsTo(c, missed)
		if got := among(back.messages, want); !slices.Equal(got, want) {
			t.Errorf("the panel: got the messages %v, want the missed ones of a chat, %v", got, want)
		}
	}
	back.stop()
}
