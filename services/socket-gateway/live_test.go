package socketgateway_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/redisclient"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/opstest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// emit sends an event with an acknowledgement, which comes as "ack".
func (c *client) emit(event string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte("42/message,3"+event)); err != nil {
		c.t.Fatal(err)
	}
}

// answerTo emits and returns the acknowledgement.
func (c *client) answerTo(event string) string {
	c.t.Helper()
	c.emit(event)
	return string(c.await("ack").Data)
}

func (w *world) supportTypes(v visitor, name string, at time.Time) {
	w.t.Helper()
	err := w.bus.RPC().Signal(event.Typing{CompanyID: "company", AppID: v.appID, ChatUserID: v.chatUserID, Side: subject.SideSupport, Name: name, At: at})
	if err != nil {
		w.t.Fatal(err)
	}
}

// However many gateways there are, each signal reaches each socket of the visitor once, on whichever gateway
// it is; and what has lain about for longer than it counts reaches nobody.
func TestSupportTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, other := w.visitor(), w.visitor()
	var clients []*client
	for _, g := range []*gateway{w.start(), w.start()} {
		opstest.AwaitUp(w.t, g.ops)
		for range 2 {
			c := connect(t, g.url, v.token)
			c.await("connect")
			clients = append(clients, c)
		}
	}
	at := time.Now().UTC().Truncate(time.Millisecond)
	w.supportTypes(other, "Nobody", at)
	w.supportTypes(v, "late", at.Add(-time.Minute))
	w.supportTypes(v, "Nora", at)
	w.must(w.bus.RPC().Signal(event.ReadCursorMoved{
		CompanyID: "company", AppID: v.appID, ChatUserID: v.chatUserID, ChatID: v.chatID, Side: subject.SideSupport, UpTo: at,
	}))
	w.reply(v, `{"text":"after"}`)
	when := at.Format(chat.TimeFormat)
	for i, c := range clients {
		got := map[string]string{}
		for range 3 { // signals and replies take different paths
			h := c.next()
			got[h.Event] = string(h.Data)
		}
		if want := `{"name":"Nora","at":"` + when + `"}`; got["typing"] != want {
			t.Errorf("socket %d: got %v, want typing %s once", i, got, want)
		}
		if want := `{"chatId":"` + v.chatID + `","side":"support","upTo":"` + when + `"}`; got["read"] != want {
			t.Errorf("socket %d: got %v, want read %s", i, got, want)
		}
	}
}

// The official client says and hears it, over both transports.
func TestOfficialClientTypesAndReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop, err := w.bus.RPC().HandleReading(new(reader).read)
	w.must(err)
	t.Cleanup(stop)
	g := w.start()
	for _, transport := range []string{"websocket", "polling"} {
		v := w.visitor()
		c := connectOfficial(t, g.url, v.token, transport)
		c.await("connect")
		for _, test := range []struct{ event, want string }{
			{`["typing"]`, `{"ok":true}`}, {`["read",{"messageId":"m1"}]`, `{"ok":true,"unread":3}`}, {`["read"]`, wrongRead[1 : len(wrongRead)-1]},
		} {
			if _, err := io.WriteString(c.stdin, test.event+"\n"); err != nil {
				t.Fatal(err)
			}
			if got := string(c.await("ack").Data); got != test.want {
				t.Errorf("%s, %s: got %s, want %s", transport, test.event, got, test.want)
			}
		}
		w.supportTypesUntil(v, c)
	}
}

// supportTypesUntil repeats what a writer repeats, until the client has heard it: a client that polls may
// miss one between two polls.
func (w *world) supportTypesUntil(v visitor, c *client) {
	w.t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		w.supportTypes(v, "Nora", time.Now())
		select {
		case h := <-c.happens:
			if h.Event != "typing" || !strings.Contains(string(h.Data), `"name":"Nora"`) {
				w.t.Errorf("got %s %s, want typing", h.Event, h.Data)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	w.t.Error("got no typing event, want one")
}

// A visitor who comes back gets what was written meanwhile, and nothing of who typed: it is over.
func TestTypingIsNeverReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, v := w.start(), w.visitor()
	c := connect(t, g.url, v.token)
	var first struct{ PID string }
	if err := json.Unmarshal(c.await("connect").Data, &first); err != nil {
		t.Fatal(err)
	}
	w.reply(v, `{"text":"one"}`)
	offset := c.await("message").Offset
	c.conn.CloseNow()
	w.supportTypes(v, "Nora", time.Now())
	want := w.reply(v, `{"text":"two"}`)
	again := connectWith(t, g.url, "", map[string]string{"token": v.token, "pid": first.PID, "offset": offset})
	again.await("connect")
	if got := string(again.await("message").Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	last := w.reply(v, `{"text":"three"}`)
	if got := string(again.await("message").Data); got != last {
		t.Errorf("got %s, want nothing before %s", got, last)
	}
}

// A visitor's typing is told at most once in two seconds, with whatever arguments it comes, and the connection stays.
func TestVisitorTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, clock := w.startWithClock()
	v := w.visitor()
	heard := bustest.Collect(t, w.natsURL, subject.AllVisitorTyping)
	c := connect(t, g.url, v.token)
	c.await("connect")
	const limited = `[{"ok":false,"code":"TOO_MANY_REQUESTS","message":"Too many events. Please try again later."}]`
	if got := c.answerTo(`["typing"]`); got != `[{"ok":true}]` {
		t.Fatalf("got %s, want it taken", got)
	}
	m := heard.Next()
	e, err := event.Decode[event.Typing](m.Subject, m.Data)
	if err != nil || e.CompanyID != "company" || e.AppID != v.appID || e.ChatUserID != v.chatUserID || e.Side != subject.SideVisitor || e.Name != "" {
		t.Fatalf("got %s %s and %v, want the visitor typing", m.Subject, m.Data, err)
	}
	for range 50 {
		if got := c.answerTo(`["typing",{"name":"Somebody else"},[[]],null]`); got != limited {
			t.Fatalf("got %s, want %s", got, limited)
		}
	}
	second := connect(t, g.url, v.token) // the limit is the visitor's, not the socket's
	second.await("connect")
	if got := second.answerTo(`["typing"]`); got != limited {
		t.Errorf("got %s from a second socket, want %s", got, limited)
	}
	clock.advance(event.TypingPause)
	if got := c.answerTo(`["typing",{"name":"Somebody else"}]`); got != `[{"ok":true}]` {
		t.Errorf("after two seconds: got %s, want it taken", got)
	}
	if m := heard.Next(); strings.Contains(string(m.Data), "Somebody") {
		t.Errorf("got %s, want nothing that a client says of itself", m.Data)
	}
}

const wrongRead = `[{"ok":false,"code":"VALIDATION_ERROR","message":"The argument must be an object with the id of a message: {messageId}"}]`

// reader stands in for the Widget API.
type reader struct {
	mu    sync.Mutex
	asked []string
}

func (r *reader) read(_ context.Context, companyID, _, chatUserID, messageID string) (rpc.Reading, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, companyID+" "+chatUserID+" "+messageID)
	switch messageID {
	case "unknown":
		return rpc.Reading{}, apperr.New(apperr.NotFound, "MESSAGE_NOT_FOUND", "Message not found")
	case "away":
		return rpc.Reading{}, apperr.Unreachable("store", context.DeadlineExceeded)
	}
	return rpc.Reading{Unread: 3, ReadUpTo: messageID, SeenUpTo: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}, nil
}

// The acknowledgement of a read says that the Widget API has stored it; what is wrong is refused with a
// reason, and the connection stays.
func TestVisitorReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := new(reader)
	stop, err := w.bus.RPC().HandleReading(r.read)
	w.must(err)
	t.Cleanup(stop)
	g, v := w.start(), w.visitor()
	c := connect(t, g.url, v.token)
	c.await("connect")
	for _, test := range []struct{ argument, want string }{
		{`,{"messageId":"m1"}`, `[{"ok":true,"unread":3}]`},
		{`,{"messageId":"unknown"}`, `[{"ok":false,"code":"MESSAGE_NOT_FOUND","message":"There is no such message in the open chat"}]`},
		{`,{"messageId":"away"}`, `[{"ok":false,"code":"SERVICE_UNAVAILABLE","message":"Service is temporarily unavailable. Please try again."}]`},
		{``, wrongRead},
		{`,"m1"`, wrongRead},
		{`,{}`, wrongRead},
		{`,{"messageId":7}`, wrongRead},
		{`,{"messageId":["m1"]}`, wrongRead},
		{`,null`, wrongRead},
		{`,{"messageId":"` + strings.Repeat("m", 300) + `"}`, wrongRead},
	} {
		if got := c.answerTo(`["read"` + test.argument + `]`); got != test.want {
			t.Errorf("read%s: got %s, want %s", test.argument, got, test.want)
		}
	}
	if len(r.asked) != 3 || r.asked[0] != "company "+v.chatUserID+" m1" {
		t.Errorf("got %v asked, want what was well formed", r.asked)
	}
	answers := map[string]int{}
	for range 60 {
		answers[c.answerTo(`["read",{"messageId":"m1"}]`)]++
	}
	if taken := answers[`[{"ok":true,"unread":3}]`]; taken > 30 || len(answers) != 2 {
		t.Errorf("got %v, want at most 30 in a minute, and the rest refused", answers)
	}
}

// A client that asks for it hears after the connect how far its chat is read; another does not.
func TestUnreadAtConnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop, err := w.bus.RPC().HandleReading(new(reader).read)
	w.must(err)
	t.Cleanup(stop)
	g, v := w.start(), w.visitor()
	quiet := connect(t, g.url, v.token)
	quiet.await("connect")
	c := dial(t, g.url, "", []byte(`{"token":"`+v.token+`","unread":true}`))
	c.await("connect")
	if got := string(c.await("unread").Data); got != `{"unread":3,"seenUpTo":"2026-03-01T12:00:00.000Z"}` {
		t.Errorf("got %s, want how far the chat is read", got)
	}
	want := w.reply(v, `{"text":"hello"}`)
	if got := string(quiet.await("message").Data); got != want {
		t.Errorf("got %s, want nothing before the reply", got)
	}
}

// Visitors are online while they have a socket on any gateway; the last one that leaves tells when. A gateway
// that is gone without a word leaves nothing but what expires.
func TestVisitorsAreOnline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, err := redisclient.New(w.redisURL, redisclient.Timeouts{})
	w.must(err)
	t.Cleanup(func() { client.Close() })
	kept := presence.NewRedis(client)
	one, two := w.start(), w.start()
	v := w.visitor()
	key := presence.Visitor(v.appID, v.chatUserID)
	await := func(what string, wanted func(presence.State) bool) {
		t.Helper()
		timetest.Await(t, what, func() ([]presence.State, error) { return kept.States(t.Context(), key) },
			func(states []presence.State) bool { return wanted(states[0]) })
	}
	online := func(s presence.State) bool { return s.Online }
	first := connect(t, one.url, v.token)
	first.await("connect")
	await("connected", online)
	if ttl := client.TTL(t.Context(), "parley:presence:"+key).Val(); ttl <= 0 || ttl > presence.TTL {
		t.Errorf("got %v to live, want at most %v", ttl, presence.TTL)
	}
	w.forget(client, key)
	second := connect(t, two.url, v.token)
	second.await("connect")
	await("on the other gateway", online)
	began := time.Now()
	first.conn.CloseNow()
	second.conn.CloseNow()
	await("left", func(s presence.State) bool { return !s.Online && s.SeenAt.After(began.Add(-time.Minute)) })
}

func (w *world) forget(client redis.UniversalClient, key string) {
	w.t.Helper()
	w.must(client.Del(w.t.Context(), "parley:presence:"+key).Err())
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
