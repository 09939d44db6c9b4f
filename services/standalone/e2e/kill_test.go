package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/redisclient"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/nettest"
)

// Three gateways and two processors: when any of them, or NATS, is killed with SIGKILL during its work,
// visitors receive whole answers, agents and visitors see the same state, and companies receive every
// webhook.
func TestKilledGatewaysAndProcessors(t *testing.T) {
	f := newDeployment(t, 3)
	f.accounts = true
	f.settings = []string{"WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", "WEBHOOK_TIMEOUT=2s"}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	f.add(t, "processor-2")
	for _, engine := range []string{"seed", "nats", "redis"} {
		f.start(t, engine)
	}
	for _, name := range f.services {
		f.start(t, name)
	}
	f.awaitReady(t, http.StatusOK, f.services...)
	f.startEdge(t)
	t.Run("the gateway that reads", func(t *testing.T) {
		a := f.answering(t)
		defer f.killed(t, a.reader)()
		a.finish(t)
	})
	t.Run("the visitor's gateway", f.visitorsGatewayKilled)
	t.Run("the processor that writes", f.processorKilled)
	t.Run("NATS", func(t *testing.T) {
		a := f.answering(t)
		f.killed(t, "nats")()
		a.finish(t)
	})
	f.permissions(t)
}

// add adds a service to those that start with the deployment.
func (f *deployment) add(t *testing.T, name string) {
	t.Helper()
	f.services = append(f.services, name)
	for _, addresses := range []map[string]string{f.addr, f.ops} {
		addr, err := nettest.FreeAddr()
		check(t, err)
		addresses[name] = addr
	}
}

// killed kills a process. The returned function restarts it.
func (f *deployment) killed(t *testing.T, name string) (again func()) {
	t.Helper()
	check(t, f.run[name].kill())
	return func() {
		f.start(t, name)
		f.awaitReady(t, http.StatusOK, f.services...)
	}
}

// figure returns one sample of a service's metrics, such as parley_gateway_sockets; 0 if it is absent.
func (f *deployment) figure(t *testing.T, name, sample string) float64 {
	t.Helper()
	answer, err := http.Get("http://" + f.ops[name] + "/metrics")
	check(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, sample+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			check(t, err)
			return n
		}
	}
	return 0
}

// figures returns a sample of the services with a name prefix.
func (f *deployment) figures(t *testing.T, kind, sample string) map[string]float64 {
	t.Helper()
	all := make(map[string]float64)
	for _, name := range f.services {
		if strings.HasPrefix(name, kind) {
			all[name] = f.figure(t, name, sample)
		}
	}
	return all
}

// grown returns the service whose figure has grown most.
func grown(before, after map[string]float64) (name string) {
	for other, n := range after {
		if d := n - before[other]; d > 0 && (name == "" || d > after[name]-before[name]) {
			name = other
		}
	}
	return name
}

// onEachGateway connects the visitor through the proxy until every gateway has a socket, and returns one of each.
func (f *deployment) onEachGateway(t *testing.T, v *visitor) map[string]*socket {
	t.Helper()
	const gauge = "parley_gateway_sockets"
	sum := func(figures map[string]float64) (n float64) {
		for _, of := range figures {
			n += of
		}
		return n
	}
	eventually(t, "the sockets of earlier tests have disconnected", func() error {
		if n := sum(f.figures(t, "gateway", gauge)); n != 0 {
			return fmt.Errorf("got %v sockets, want none", n)
		}
		return nil
	})
	found, before := map[string]*socket{}, map[string]float64{}
	for tries := 0; len(found) < 3; tries++ {
		if tries == 50 {
			t.Fatalf("got sockets on %d gateways, want 3", len(found))
		}
		s := connected(t, f.WidgetBaseURL, v.token, "websocket")
		after := f.figures(t, "gateway", gauge)
		eventually(t, "the socket is counted", func() error {
			if after = f.figures(t, "gateway", gauge); sum(after) <= sum(before) {
				return fmt.Errorf("got %v", after)
			}
			return nil
		})
		if host := grown(before, after); found[host] == nil {
			found[host] = s
		}
		before = after
	}
	return found
}

// answering is a visitor with a socket on each gateway, who receives a streamed answer.
type answering struct {
	*visitor
	sockets        map[string]*socket // by gateway
	shown          map[string]*reading
	received       []record
	reader, writer string // the gateway that reads the parts from the stream, the processor whose bot writes them
}

func (f *deployment) answering(t *testing.T) *answering {
	t.Helper()
	a := &answering{visitor: register(t, f.place, f.widgetAPI(t)), shown: map[string]*reading{}}
	a.received, a.sockets = a.history(t), f.onEachGateway(t, a.visitor)
	f.write(t, a)
	return a
}

// write lets the bot stream an answer to the visitor, until every socket has received some of it.
func (f *deployment) write(t *testing.T, a *answering) {
	t.Helper()
	const emitted, published = `parley_gateway_parts_total{result="ok"}`, `parley_bus_publish_seconds_count{result="ok"}`
	before, unwritten := f.figures(t, "gateway", emitted), f.figures(t, "processor", published)
	a.received = append(a.received, a.write(t, "stream"))
	for host, s := range a.sockets {
		r := &reading{broken: true}
		a.shown[host] = r
		s.read(t, r, func() bool { return r.parts >= 5 })
	}
	a.reader = grown(before, f.figures(t, "gateway", emitted))
	a.writer = grown(unwritten, f.figures(t, "processor", published))
	if a.reader == "" || a.writer == "" {
		t.Fatalf("got %q as the reader and %q as the writer of a streamed answer", a.reader, a.writer)
	}
}

// finish reads to the end: every socket gets the whole answer and then its message, and the history has it once.
func (a *answering) finish(t *testing.T) {
	t.Helper()
	var final record
	for host, s := range a.sockets {
		r := a.shown[host]
		s.read(t, r, func() bool { return r.final != nil })
		text, reason := r.final.words(t)
		if reason != "" || !strings.HasSuffix(text, "kept in the history. 👋") || r.id != r.final.ID || !strings.HasPrefix(text, r.text) {
			t.Errorf("the socket on %s: got %q (%s) after %q, want the whole answer", host, text, reason, r.text)
		}
		if final.ID != "" && !final.same(r.final.record) {
			t.Errorf("the socket on %s: got %+v, want what the others got, %+v", host, r.final.record, final)
		}
		final = r.final.record
	}
	a.received = append(a.received, final)
	checkHistory(t, a.visitor, a.received)
}

// visitorsGatewayKilled kills a gateway that has a socket of the visitor and does not read the visitor's
// parts. The socket reconnects to another gateway and gets the rest of the answer; earlier typing is not
// repeated, the read cursor only advances, and the visitor stays online.
func (f *deployment) visitorsGatewayKilled(t *testing.T) {
	a := f.answering(t)
	host := ""
	for name := range a.sockets {
		if name != a.reader {
			host = name
		}
	}
	back := a.sockets[host]
	chatUserID, _ := f.chatUser(t, a.visitor)
	presentAgain := f.presence(t, presence.Visitor(f.AppID, chatUserID))
	typing := f.typing(t, chatUserID)
	defer f.killed(t, host)()
	a.finish(t)
	presentAgain()

	// The cursor: a late read report moves nothing back.
	var answers []record
	for _, text := range []string{"one", "two"} {
		a.received = append(a.received, a.write(t, text))
		answers = append(answers, a.message(t).record)
	}
	if got := a.sockets[a.reader].ask(t, "read", map[string]string{"messageId": answers[1].ID}); !strings.Contains(got, `"unread":0`) {
		t.Errorf("read: got %s, want nothing unread", got)
	}
	if got := back.ask(t, "read", map[string]string{"messageId": answers[0].ID}); !strings.Contains(got, `"unread":0`) {
		t.Errorf("an earlier message read on another gateway: got %s, want nothing unread", got)
	}
	got := a.api.call(t, http.MethodGet, "/message", nil, bearer(a.token)).Header
	if got.Get("Parley-Unread") != "0" || got.Get("Parley-Read-Up-To") != answers[1].ID {
		t.Errorf("got %s unread after %s, want 0 after %s", got.Get("Parley-Unread"), got.Get("Parley-Read-Up-To"), answers[1].ID)
	}

	// Each signal reaches each socket, on whichever gateway it is now, once; no earlier one is repeated.
	typing("Nora", a.sockets)
}

// message returns the next message, which each of the sockets gets.
func (a *answering) message(t *testing.T) (d delivery) {
	t.Helper()
	for _, s := range a.sockets {
		for {
			e := s.await(t, "event")
			if e.Event != "message" {
				continue // the end of the parts, or typing
			}
			check(t, json.Unmarshal(e.Args[0], &d))
			if !a.knows(d.ID) {
				break // otherwise an earlier reply, which the gateway that took over has emitted again
			}
		}
	}
	a.received = append(a.received, d.record)
	return d
}

func (a *answering) knows(id string) bool {
	for _, r := range a.received {
		if r.ID == id {
			return true
		}
	}
	return false
}

// chatUser looks up a visitor and the visitor's chat with parleyctl.
func (f *deployment) chatUser(t *testing.T, v *visitor) (chatUserID, chatID string) {
	t.Helper()
	chats := ask[[]struct{ ID, ChatUserID string }](f.operator(t), "chats", "list", "--app", v.place.AppID, "--email", v.email)
	if len(chats) != 1 {
		t.Fatalf("got %+v, want the visitor's chat", chats)
	}
	return chats[0].ChatUserID, chats[0].ID
}

// presence waits until the visitor is online, with an entry that expires. The returned function removes the
// entry, as if it had expired, and waits until another gateway has written it again.
func (f *deployment) presence(t *testing.T, key string) (again func()) {
	t.Helper()
	client, err := redisclient.New(f.redisURL("operator"), redisclient.Timeouts{})
	check(t, err)
	t.Cleanup(func() { client.Close() })
	kept, entry := presence.NewRedis(client), "parley:presence:"+key
	online := func() {
		t.Helper()
		eventually(t, "the visitor is online", func() error {
			states, err := kept.States(t.Context(), key)
			if err == nil && !states[0].Online {
				err = fmt.Errorf("got %+v", states[0])
			}
			return err
		})
		if ttl := client.TTL(t.Context(), entry).Val(); ttl <= 0 || ttl > presence.TTL {
			t.Errorf("got an entry that lives for %v, want at most %v", ttl, presence.TTL)
		}
	}
	online()
	return func() {
		t.Helper()
		check(t, client.Del(t.Context(), entry).Err())
		online()
	}
}

// typing sends one typing signal of support. The returned function sends signals under another name until
// every socket has received one; no socket may receive the first name by then.
func (f *deployment) typing(t *testing.T, chatUserID string) (again func(name string, sockets map[string]*socket)) {
	t.Helper()
	nc, err := nats.Connect(f.natsURL("panel"), nats.CustomInboxPrefix("_INBOX.panel"))
	check(t, err)
	t.Cleanup(nc.Close)
	say := func(name string) {
		t.Helper()
		e := event.Typing{CompanyID: f.CompanyID, AppID: f.AppID, ChatUserID: chatUserID, Side: subject.SideSupport, Name: name, At: time.Now()}
		check(t, nc.Publish(e.Subject(), e.AppendJSON(nil)))
	}
	say("Before")
	check(t, nc.Flush())
	return func(name string, sockets map[string]*socket) {
		t.Helper()
		for host, s := range sockets {
			for typistName := ""; typistName != name; {
				say(name)
				select {
				case e := <-s.events:
					var typist struct{ Name string }
					if e.Kind == "event" && e.Event == "typing" {
						check(t, json.Unmarshal(e.Args[0], &typist))
					}
					if typistName = typist.Name; typistName == "Before" {
						t.Errorf("the socket on %s received typing from before the kill", host)
					}
				case <-time.After(time.Second):
				}
			}
		}
	}
}

// processorKilled kills the processor whose bot is streaming while the receiver of the webhooks is down and a
// chat is handed over.
func (f *deployment) processorKilled(t *testing.T) {
	stored := openStore(t, f.place)
	check(t, stored.ChangeApplication(t.Context(), f.AppID, store.ApplicationChange{Support: &chat.Support{HandoverButton: true, Rating: true}}))
	o, r := f.operator(t), newReceiver(t)
	o.create("webhooks", "create", "--company", f.CompanyID, "--url", r.url, "--events", "message.received,chat.closed,chat.rated")
	writer, asks := register(t, f.place, f.widgetAPI(t)), register(t, f.place, f.widgetAPI(t))
	_, chatID := f.chatUser(t, asks)
	sent := []string{writer.write(t, "the first one").ID}
	r.await(t, sent...) // the endpoint is known
	a := f.answering(t)
	sent = append(sent, a.received[len(a.received)-1].ID)

	failed := func() (n float64) {
		for _, of := range f.figures(t, "processor", `parley_webhook_attempts_total{result="no_answer"}`) {
			n += of
		}
		return n
	}
	before := failed()
	r.kill(t)
	for n := range 3 {
		sent = append(sent, writer.write(t, fmt.Sprint("while the receiver is down ", n)).ID)
	}
	sent = append(sent, asks.write(t, "human").ID)
	eventually(t, "a delivery fails", func() error {
		if failed() == before {
			return fmt.Errorf("got %v failed attempts, want more", before)
		}
		return nil
	})
	defer f.killed(t, a.writer)()
	r.start(t)
	for n := range 10 {
		sent = append(sent, writer.write(t, fmt.Sprint("after the kill ", n)).ID)
	}
	a.finish(t)
	r.await(t, sent...)

	// The chat is handed over once, and the visitor gets one notice.
	notices := func(kind string) (n int) {
		history, _, err := stored.History(t.Context(), chatID, store.HistoryQuery{})
		check(t, err)
		for _, m := range history {
			if strings.Contains(string(m.Data), `"notice":"`+kind+`"`) {
				n++
			}
		}
		return n
	}
	noticed := func(kind string) {
		t.Helper()
		eventually(t, "the notice "+kind, func() error {
			if notices(kind) == 0 {
				return errors.New("the visitor has no notice")
			}
			return nil
		})
	}
	noticed("handover")
	state := asks.api.call(t, http.MethodGet, "/chat", nil, bearer(asks.token)).Body
	if !strings.Contains(state, `"control":"agent"`) || !strings.Contains(state, `"waiting":true`) {
		t.Errorf("got %s, want a chat that waits for the agents", state)
	}
	o.run("chats", "close", chatID, "--yes")
	noticed("closed")
	rated := asks.api.call(t, http.MethodPost, "/chat/"+chatID+"/rating", map[string]any{"score": 4}, bearer(asks.token))
	if rated.Status != http.StatusOK || !strings.Contains(rated.Body, `"score":4`) {
		t.Errorf("rating: got %d %s, want 200", rated.Status, rated.Body)
	}
	r.await(t, webhook.TypeChatClosed+" "+chatID, webhook.TypeChatRated+" "+chatID)
	if n, m := notices("handover"), notices("closed"); n != 1 || m != 1 {
		t.Errorf("got %d notices of the handover and %d of the closing, want one of each", n, m)
	}
}

// receiver is a company's server that can be killed.
type receiver struct {
	url    string
	server *http.Server

	mu   sync.Mutex
	got  map[string]map[string]bool // the webhook-ids of each message, and of each other event of a chat: "chat.closed <chatId>"
	addr string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	addr, err := nettest.FreeAddr()
	check(t, err)
	r := &receiver{url: "http://" + addr + "/" + uuid.NewString(), addr: addr, got: map[string]map[string]bool{}}
	r.start(t)
	t.Cleanup(func() { r.kill(t) })
	return r
}

func (r *receiver) start(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp", r.addr)
	check(t, err)
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: limit}
	go func(s *http.Server) { _ = s.Serve(ln) }(r.server) // until kill
}

func (r *receiver) kill(t *testing.T) {
	t.Helper()
	check(t, r.server.Close())
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var body struct {
		Type string
		Data struct {
			ChatID  string
			Message struct{ ID string }
		}
	}
	if json.NewDecoder(request.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	what := body.Type + " " + body.Data.ChatID
	if body.Data.Message.ID != "" {
		what = body.Data.Message.ID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.got[what] == nil {
		r.got[what] = map[string]bool{}
	}
	r.got[what][request.Header.Get("webhook-id")] = true
	w.WriteHeader(http.StatusNoContent)
}

// await waits until every event has arrived, each under one webhook-id. Deliveries that a dead processor had
// claimed wait for their lease.
func (r *receiver) await(t *testing.T, sent ...string) {
	t.Helper()
	eventually(t, "webhooks", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, what := range sent {
			if len(r.got[what]) == 0 {
				return fmt.Errorf("the delivery of %s was lost", what)
			}
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range sent {
		if n := len(r.got[what]); n != 1 {
			t.Errorf("got %d webhook-ids for %s, want one", n, what)
		}
	}
}
