package socketio

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-chat/parley/pkg/socketio/internal/burn"
)

// A dialogue tests a statement of revision 5 of the Socket.IO protocol with raw packets. Each is run over
// WebSocket and over polling. A line is an Engine.IO packet that the client sends ("> ") or receives ("< ");
// "* " matches any text without a quote, "b" starts a binary packet with the following bytes. The line "end"
// requires the end of the session, and "open" that it is open.
type dialogue struct {
	section, says string
	lines         []string
}

const (
	sid      = `{"sid":"*"}`
	one, two = `{"_placeholder":true,"num":0}`, `{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}`
)

// joined returns a dialogue that has joined the root namespace.
func joined(lines ...string) []string {
	return append([]string{"> 40", "< 40" + sid, `< 42["auth",{}]`}, lines...)
}

func dialogues() []dialogue {
	all := []dialogue{
		{"connect", "to the root namespace", joined("open")},
		{"connect", "with a payload", []string{`> 40{"token":"123"}`, "< 40" + sid, `< 42["auth",{"token":"123"}]`}},
		{"connect", "with an empty payload", []string{`> 40{}`, "< 40" + sid, `< 42["auth",{}]`}},
		{"connect", "to another namespace", []string{"> 40/custom,", "< 40/custom," + sid, `< 42/custom,["auth",{}]`}},
		{"connect", "to another namespace, without the comma", []string{"> 40/custom", "< 40/custom," + sid, `< 42/custom,["auth",{}]`}},
		{"connect", "to another namespace with a payload", []string{`> 40/custom,{"token":"abc"}`, "< 40/custom," + sid, `< 42/custom,["auth",{"token":"abc"}]`}},
		{"connect", "to several namespaces", joined("> 40/custom,", "< 40/custom,"+sid, `< 42/custom,["auth",{}]`, `> 42["message",1]`, `< 42["message-back",1]`)},
		{"connect", "to a namespace that is not there", []string{"> 40/random", `< 44/random,{"message":"Invalid namespace"}`, "> 40", "< 40" + sid}},
		{"connect", "refused by a middleware", []string{"> 40/refused,", `< 44/refused,{"message":"No","data":{"code":"NO"}}`, "> 40", "< 40" + sid}},
		{"connect", "refused, and again", []string{"> 40/refused,", `< 44/refused,{"message":"No","data":{"code":"NO"}}`, "> 40/refused,", `< 44/refused,{"message":"No","data":{"code":"NO"}}`, "open"}},
		{"connect", "twice to the same", joined("> 40", "end")},
		{"event", "with arguments", joined(`> 42["message",1,"2",{"3":[true]},null]`, `< 42["message-back",1,"2",{"3":[true]},null]`)},
		{"event", "without arguments", joined(`> 42["message"]`, `< 42["message-back"]`)},
		{"event", "with text of all planes", joined(`> 42["message","€ÿ😀\u0000\""]`, `< 42["message-back","€ÿ😀\u0000\""]`)},
		{"event", "whose name is a number", joined(`> 42[1,"a"]`, `> 42["message"]`, `< 42["message-back"]`)},
		{"event", "that nobody handles", joined(`> 42["unknown"]`, "open")},
		{"event", "in another namespace", joined("> 40/custom,", "< 40/custom,"+sid, `< 42/custom,["auth",{}]`, `> 42/custom,["message",1]`, `< 42/custom,["message-back",1]`)},
		{"event", "in order", joined(`> 42["message",1]`, `> 42["message",2]`, `> 42["message",3]`, `< 42["message-back",1]`, `< 42["message-back",2]`, `< 42["message-back",3]`)},
		{"binary", "an attachment", joined(`> 451-["message",`+one+`]`, "> b\x01\x02\x03", `< 451-["message-back",`+one+`]`, "< b\x01\x02\x03")},
		{"binary", "two attachments", joined(`> 452-["message",`+two+`]`, "> b\x01", "> b\x02\x03", `< 452-["message-back",`+two+`]`, "< b\x01", "< b\x02\x03")},
		{"binary", "inside an object", joined(`> 451-["message",{"a":[`+one+`]}]`, "> b\x01", `< 451-["message-back",{"a":[`+one+`]}]`, "< b\x01")},
		{"binary", "in another namespace", joined("> 40/custom,", "< 40/custom,"+sid, `< 42/custom,["auth",{}]`,
			`> 451-/custom,["message",`+one+`]`, "> b\x01", `< 451-/custom,["message-back",`+one+`]`, "< b\x01")},
		{"binary", "an acknowledgement", joined(`> 452-789["message-with-ack",`+two+`]`, "> b\x01", "> b\x02", `< 462-789[`+two+`]`, "< b\x01", "< b\x02")},
		{"acknowledgement", "of the client's event", joined(`> 42456["message-with-ack",1,"2",{"3":[false]}]`, `< 43456[1,"2",{"3":[false]}]`)},
		{"acknowledgement", "without arguments", joined(`> 420["message-with-ack"]`, `< 430[]`)},
		{"acknowledgement", "in another namespace", joined("> 40/custom,", "< 40/custom,"+sid, `< 42/custom,["auth",{}]`,
			`> 42/custom,7["message-with-ack",1]`, `< 43/custom,7[1]`)},
		{"acknowledgement", "of the server's event", joined(`> 42["ask"]`, `< 420["question"]`, `> 430["answer",1]`, `< 42["answered","answer",1]`)},
		{"acknowledgement", "of the server's event, binary", joined(`> 42["ask"]`, `< 420["question"]`, `> 461-0[`+one+`]`, "> b\x01", `< 451-["answered",`+one+`]`, "< b\x01")},
		{"acknowledgement", "that nobody waits for", joined(`> 43999[]`, `> 42["message"]`, `< 42["message-back"]`)},
		{"disconnect", "from the root namespace", joined("> 41", "open", "> 40", "< 40"+sid)},
		{"disconnect", "from another namespace", joined("> 40/custom,", "< 40/custom,"+sid, `< 42/custom,["auth",{}]`, "> 41/custom,", `> 42["message","main"]`, `< 42["message-back","main"]`)},
		{"disconnect", "by the server", joined(`> 42["leave"]`, "< 41", "> 40", "< 40"+sid)},
		{"disconnect", "by the server, with the connection", joined(`> 42["close"]`, "< 41", "end")},
	}
	for _, first := range []string{`2["message"]`, "1", "3[]", `4{"message":"x"}`, `51-["message",{}]`, "abc", "", "9", `0[]`, `0"x"`, `0{"a"`, "0null", `0/custom,[]`} {
		all = append(all, dialogue{"connect", fmt.Sprintf("must come first, and not %q", first), []string{"> 4" + first, "end"}})
	}
	for _, bad := range []string{
		"", "abc", "9", "2", "2{}", "2[]", `2"message"`, "2null", `2["message"`, `2["message"]]`, `2[null]`, `2[{}]`, `2[["message"]]`, "2[true]",
		`2["connect"]`, `2["connect_error"]`, `2["disconnect"]`, `2["disconnecting"]`, `2["newListener"]`, `2["removeListener"]`,
		`2abc["message"]`, `299999999999999999999["message"]`, `2/nowhere,["message"]`, "3", "3{}", "31", "3[", "3[]", `4{"message":"x"}`, "4", "1{}", `1[]`,
		"5", `5["message"]`, `5-["message"]`, `50-["message"]`, `5-1-["message"]`, `51["message"]`, `5a-["message"]`, `51.5-["message"]`, `599-["message"]`,
		"6", `6-1[]`, `699-1[]`,
	} {
		all = append(all, dialogue{"malformed", fmt.Sprintf("%q", bad), joined("> 4"+bad, "end")})
	}
	return append(all,
		dialogue{"malformed", "binary data that no packet has announced", joined("> b\x01", "end")},
		dialogue{"malformed", "text instead of binary data", joined(`> 451-["message",`+one+`]`, `> 42["message"]`, "end")},
		dialogue{"malformed", "a placeholder of data that is not there", joined(`> 451-["message",{"_placeholder":true,"num":7}]`, "> b\x01", "end")},
		dialogue{"malformed", "a placeholder that is no number", joined(`> 451-["message",{"_placeholder":true,"num":"0"}]`, "> b\x01", "end")},
		dialogue{"malformed", "binary data before the namespace is joined", []string{"> b\x01", "end"}},
	)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	runDialogues(t)
}

// TestConformanceUnderLoad repeats the suite on busy processors.
func TestConformanceUnderLoad(t *testing.T) { burn.Repeat(t, runDialogues) }

func runDialogues(t *testing.T) {
	h := conformanceServer(t)
	for _, d := range dialogues() {
		for transport, dial := range map[string]func(*harness, *testing.T) talker{"polling": dialPolling, "websocket": dialWebSocket} {
			t.Run(d.section+"/"+transport+"/"+d.says, func(t *testing.T) {
				t.Parallel()
				hold(t, dial(h, t), d.lines)
			})
		}
	}
}

// conformanceServer starts a server that is closed after the parallel tests.
func conformanceServer(t *testing.T) *harness {
	srv := NewServer(Options{ConnectTimeout: time.Hour, PingTimeout: time.Minute})
	for _, name := range []string{"/", "/custom"} {
		srv.Of(name).OnConnection(func(s *Socket) {
			_ = s.Emit("auth", s.Handshake().Auth)
			s.On("message", func(args Args, _ Ack) { _ = s.Emit("message-back", args.Values()...) })
			s.On("message-with-ack", func(args Args, ack Ack) { _ = ack(args.Values()...) })
			s.On("ask", func(Args, Ack) {
				if answer, err := s.EmitWithAck(context.Background(), "question"); err == nil {
					_ = s.Emit("answered", answer.Values()...)
				}
			})
			s.On("leave", func(Args, Ack) { s.Disconnect(false) })
			s.On("close", func(Args, Ack) { s.Disconnect(true) })
		})
	}
	srv.Of("/refused").Use(func(context.Context, *Socket) error {
		return &ConnectError{Message: "No", Data: map[string]string{"code": "NO"}}
	})
	hs := httptest.NewServer(srv)
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		hs.Close()
	})
	return &harness{t: t, srv: srv, url: hs.URL + "/socket.io/?EIO=4"}
}

// talker is a client with one session.
type talker interface {
	send(packet string)
	// receive returns the next packet except heartbeats; ok is false at the end of the session.
	receive() (packet string, ok bool)
	// ended checks that the session is unknown.
	ended()
}

func hold(t *testing.T, c talker, lines []string) {
	for _, line := range lines {
		switch packet, sends := strings.CutPrefix(line, "> "); {
		case sends:
			c.send(packet)
		case line == "open":
			c.send("40/random")
			want(t, c, `44/random,{"message":"Invalid namespace"}`)
		case line == "end":
			if got, ok := c.receive(); ok {
				t.Fatalf("got %q, want the end", got)
			}
			c.ended()
		default:
			want(t, c, line[len("< "):])
		}
	}
}

func want(t *testing.T, c talker, packet string) {
	t.Helper()
	got, ok := c.receive()
	head, tail, wild := strings.Cut(packet, "*")
	matches := got == packet || wild && strings.HasPrefix(got, head) && strings.HasSuffix(got, tail) &&
		len(got) > len(packet) && !strings.Contains(got[len(head):len(got)-len(tail)], `"`)
	if !ok || !matches {
		t.Fatalf("got %q, %v, want %q", got, ok, packet)
	}
}

type webSocketTalker struct {
	t    *testing.T
	conn *websocket.Conn
}

func dialWebSocket(h *harness, t *testing.T) talker {
	conn, _, err := websocket.Dial(t.Context(), h.url+"&transport=websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	c := &webSocketTalker{t, conn}
	c.receive()
	return c
}

func (c *webSocketTalker) send(packet string) {
	kind := websocket.MessageText
	if data, binary := strings.CutPrefix(packet, "b"); binary {
		kind, packet = websocket.MessageBinary, data
	}
	if err := c.conn.Write(c.t.Context(), kind, []byte(packet)); err != nil {
		c.t.Logf("writing: %v", err)
	}
}

func (c *webSocketTalker) receive() (string, bool) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		kind, data, err := c.conn.Read(ctx)
		switch {
		case ctx.Err() != nil:
			c.t.Fatal("got no packet, want one")
		case err != nil:
			return "", false
		case kind == websocket.MessageBinary:
			return "b" + string(data), true
		case string(data) == "2":
			c.send("3")
		default:
			return string(data), true
		}
	}
}

func (c *webSocketTalker) ended() {}

type pollingTalker struct {
	t       *testing.T
	url     string
	packets []string
}

func dialPolling(h *harness, t *testing.T) talker {
	c := &pollingTalker{t: t, url: h.url + "&transport=polling"}
	_, open := c.request(http.MethodGet, "")
	id, _, _ := strings.Cut(strings.TrimPrefix(open, `0{"sid":"`), `"`)
	c.url += "&sid=" + id
	return c
}

func (c *pollingTalker) request(method, body string) (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

func (c *pollingTalker) send(packet string) {
	if data, binary := strings.CutPrefix(packet, "b"); binary {
		packet = "b" + base64.StdEncoding.EncodeToString([]byte(data))
	}
	if status, answer := c.request(http.MethodPost, packet); status != 200 && status != 400 {
		c.t.Errorf("got %d %q, want the packet taken or refused", status, answer)
	}
}

func (c *pollingTalker) receive() (string, bool) {
	for len(c.packets) == 0 {
		status, body := c.request(http.MethodGet, "")
		if status != 200 {
			return "", false
		}
		for packet := range strings.SplitSeq(body, "\x1e") {
			switch data, binary := strings.CutPrefix(packet, "b"); {
			case binary:
				raw, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					c.t.Fatal(err)
				}
				c.packets = append(c.packets, "b"+string(raw))
			case packet == "2":
				c.send("3")
			case packet != "6":
				c.packets = append(c.packets, packet)
			}
		}
	}
	packet := c.packets[0]
	c.packets = c.packets[1:]
	return packet, packet != "1"
}

func (c *pollingTalker) ended() {
	status, body := c.request(http.MethodGet, "")
	if want := `{"code":1,"message":"Session ID unknown"}`; status != 400 || strings.TrimSpace(body) != want {
		c.t.Errorf("got %d %q, want 400 %s", status, body, want)
	}
}
