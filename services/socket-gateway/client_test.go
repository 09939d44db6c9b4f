package socketgateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-chat/parley/testkit/needs"
)

// limit bounds every wait for something that happens. It is far above what any of them takes.
const limit = 20 * time.Second

// happening is what a client tells of itself, in the form of the official client's events.
type happening struct {
	Event     string          `json:"event"` // connect, connect_error, message, disconnect
	Transport string          `json:"transport"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	Reason    string          `json:"reason"`
	Offset    string          `json:"offset"`
	Recovered bool            `json:"recovered"`
}

// client is a visitor's browser.
type client struct {
	t       *testing.T
	happens chan happening
	stdin   io.Writer       // of an official client: a line is an event to emit
	conn    *websocket.Conn // of raw clients
}

// renew shows the gateway a fresh token and asks for an answer.
func (c *client) renew(token string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(`42/message,3["token","`+token+`"]`)); err != nil {
		c.t.Fatal(err)
	}
}

func newClient(t *testing.T) *client { return &client{t: t, happens: make(chan happening, 10_000)} }

// next returns what happens next, and fails the test when nothing does.
func (c *client) next() happening {
	c.t.Helper()
	select {
	case h := <-c.happens:
		return h
	case <-time.After(limit):
		c.t.Fatal("got no event from the gateway, want one")
		return happening{}
	}
}

// await returns what happens next and fails the test when it is not that event.
func (c *client) await(event string) happening {
	c.t.Helper()
	h := c.next()
	if h.Event != event {
		c.t.Fatalf("got %s %s %s%s, want %s", h.Event, h.Message, h.Data, h.Reason, event)
	}
	return h
}

// connect opens a socket over a WebSocket with a few lines of our own, which know nothing of the engine under test.
func connect(t *testing.T, baseURL, token string) *client {
	t.Helper()
	return connectWith(t, baseURL, "", map[string]string{"token": token})
}

// connectFrom is connect by a page of that origin.
func connectFrom(t *testing.T, baseURL, token, origin string) *client {
	t.Helper()
	return connectWith(t, baseURL, origin, map[string]string{"token": token})
}

// connectWith is connect with all that a client may show.
func connectWith(t *testing.T, baseURL, origin string, auth map[string]string) *client {
	t.Helper()
	shown, err := json.Marshal(auth)
	if err != nil {
		t.Fatal(err)
	}
	return dial(t, baseURL, origin, shown)
}

// dial is connectWith where auth is any JSON.
func dial(t *testing.T, baseURL, origin string, auth []byte) *client {
	t.Helper()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	c := newClient(t)
	ctx, cancel := context.WithCancel(context.Background())
	conn, _, err := websocket.Dial(ctx, strings.Replace(baseURL, "http", "ws", 1)+"/socket.io/?EIO=4&transport=websocket",
		&websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		cancel()
		t.Fatalf("dialling: %v", err)
	}
	conn.SetReadLimit(1 << 20)
	c.conn = conn
	ended := make(chan struct{})
	go func() { defer close(ended); c.read(ctx, conn, auth) }()
	t.Cleanup(func() { cancel(); conn.CloseNow(); <-ended })
	return c
}

// read speaks the two protocols, packet by packet.
func (c *client) read(ctx context.Context, conn *websocket.Conn, auth []byte) {
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.happens <- happening{Event: "disconnect", Reason: "transport"}
			}
			return
		}
		switch packet := string(data); {
		case strings.HasPrefix(packet, "0"):
			err = conn.Write(ctx, websocket.MessageText, append([]byte("40/message,"), auth...))
		case packet == "2":
			err = conn.Write(ctx, websocket.MessageText, []byte("3"))
		case strings.HasPrefix(packet, "40/message,"):
			// Other events of clients are ignored and not acknowledged.
			err = conn.Write(ctx, websocket.MessageText, []byte(`42/message,7["message",{"text":"I write where nobody reads"}]`))
			c.happens <- happening{Event: "connect", Transport: "websocket", Data: data[len("40/message,"):]}
		case strings.HasPrefix(packet, "44/message,"):
			h := happening{}
			_ = json.Unmarshal(data[len("44/message,"):], &h)
			h.Event = "connect_error"
			c.happens <- h
		case strings.HasPrefix(packet, "42/message,"):
			c.happens <- eventOf(data[len("42/message,"):])
		case strings.HasPrefix(packet, "43/message,3"):
			c.happens <- happening{Event: "ack", Data: data[len("43/message,3"):]}
		case strings.HasPrefix(packet, "41/message"):
			c.happens <- happening{Event: "disconnect", Reason: "io server disconnect"}
		default:
			c.happens <- happening{Event: "unknown packet " + packet}
		}
		if err != nil {
			c.happens <- happening{Event: "disconnect", Reason: err.Error()}
			return
		}
	}
}

func eventOf(data []byte) happening {
	var parts []json.RawMessage
	h := happening{Event: "message"}
	if bytes.HasPrefix(data, []byte(`["token_expiring",{"expiresAt":"`)) {
		return happening{Event: "token_expiring"}
	}
	if json.Unmarshal(data, &parts) == nil && len(parts) == 2 {
		var name string
		if _ = json.Unmarshal(parts[0], &name); name == "typing" || name == "read" || name == "unread" || name == "message.part" {
			return happening{Event: name, Data: parts[1]}
		}
	}
	if json.Unmarshal(data, &parts) != nil || len(parts) != 3 || string(parts[0]) != `"message"` || json.Unmarshal(parts[2], &h.Offset) != nil {
		return happening{Event: "unknown event " + string(data)}
	}
	h.Data = parts[1]
	return h
}

// connectOfficial opens a socket with the official client (npm socket.io-client) over one transport.
func connectOfficial(t *testing.T, baseURL, token, transport string) *client {
	t.Helper()
	c := newClient(t)
	c.stdin = startNode(t, c.happens, "client.mjs", "GATEWAY_URL="+baseURL, "TOKEN="+token, "TRANSPORT="+transport)
	return c
}

// startNode runs a program of testdata with the official client until the test ends, and sends the events
// that it prints, a JSON line each. The program ends when its stdin is closed.
func startNode[E any](t *testing.T, events chan<- E, program string, env ...string) (stdin io.Writer) {
	t.Helper()
	_, node := needs.Packages(t)
	command := exec.Command(node, program)
	command.Dir = "testdata"
	command.Env = append(os.Environ(), env...)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("starting %s: %v", program, err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var e E
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				events <- e
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-read
		if err := command.Wait(); err != nil {
			t.Errorf("%s ended with %v", program, err)
		}
	})
	return in
}
