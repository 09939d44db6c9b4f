package adaptertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/internal/testenv"
)

// Adapter is the constructor of a node's adapter, as in socketio.Options. Nil means a single node.
type Adapter = func(socketio.Local) socketio.Adapter

// Node is a server of a cluster with one namespace. A socket joins the room in its auth.
type Node struct {
	*socketio.Namespace
	URL   string
	close func() error
}

// StartNode starts a node, which is closed at the end of the test.
func StartNode(t testing.TB, namespace string, adapter Adapter) *Node {
	t.Helper()
	server := socketio.NewServer(socketio.Options{Adapter: adapter})
	n := &Node{Namespace: server.Of(namespace), close: server.Close}
	n.Use(func(ctx context.Context, s *socketio.Socket) error {
		var auth struct{ Room string }
		if err := json.Unmarshal(s.Handshake().Auth, &auth); err != nil || auth.Room == "" {
			return err
		}
		return s.JoinContext(ctx, auth.Room)
	})
	listener := httptest.NewServer(server)
	n.URL = listener.URL
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("closing a node: %v", err)
		}
		listener.Close()
	})
	return n
}

// Connect connects a client to the node.
func (n *Node) Connect(t testing.TB, room string) *Client {
	t.Helper()
	return Connect(t, n.URL, n.Name(), room)
}

// Client is a minimal Socket.IO client over WebSocket.
type Client struct {
	ID       string // of the socket
	t        testing.TB
	conn     *websocket.Conn
	prefix   string      // of the namespace in a packet
	received chan string // closed with the connection
}

// Dial opens a connection to the server at url without joining a namespace.
func Dial(t testing.TB, url string) *Client {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), url+"/socket.io/?EIO=4&transport=websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{t: t, conn: conn, received: make(chan string, 64)}
	go c.read()
	t.Cleanup(c.Close)
	c.next() // the Engine.IO handshake
	return c
}

// Connect dials the server at url and joins a namespace.
func Connect(t testing.TB, url, namespace, room string) *Client {
	t.Helper()
	c := Dial(t, url)
	c.prefix = namespace + ","
	c.Write(fmt.Sprintf(`40%s{"room":%q}`, c.prefix, room))
	answer := c.next()
	var data struct{ SID string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(answer, "40"+c.prefix)), &data); err != nil || data.SID == "" {
		t.Fatalf("got %s, want a CONNECT answer", answer)
	}
	c.ID = data.SID
	return c
}

// Write sends a packet.
func (c *Client) Write(packet string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(packet)); err != nil {
		c.t.Fatal(err)
	}
}

// Close closes the connection without a DISCONNECT packet.
func (c *Client) Close() {
	_ = c.conn.CloseNow()
	for range c.received {
	}
}

func (c *Client) read() {
	defer close(c.received)
	for {
		_, data, err := c.conn.Read(context.Background())
		if err != nil {
			return
		}
		if string(data) != "2" { // a ping
			c.received <- string(data)
		}
	}
}

func (c *Client) next() string {
	c.t.Helper()
	select {
	case message, open := <-c.received:
		if !open {
			c.t.Fatal("connection closed, want a message")
		}
		return message
	case <-time.After(testenv.Patience):
		c.t.Fatal("got no message")
	}
	return ""
}

// Want reads one message for each text and requires them to be equal.
func (c *Client) Want(texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		if got := c.next(); got != text {
			c.t.Fatalf("got %s, want %s", got, text)
		}
	}
}

// WantEvent is Want for events without binary arguments.
func (c *Client) WantEvent(data ...string) {
	c.t.Helper()
	for _, text := range data {
		c.Want("42" + c.prefix + text)
	}
}

// WantDisconnect reads a DISCONNECT packet.
func (c *Client) WantDisconnect() {
	c.t.Helper()
	c.Want("41" + c.prefix)
}

// WantClose waits for the end of the connection; a DISCONNECT packet may precede it.
func (c *Client) WantClose() {
	c.t.Helper()
	late := time.After(testenv.Patience)
	for {
		select {
		case message, open := <-c.received:
			if !open {
				return
			}
			if message != "41"+c.prefix {
				c.t.Fatalf("got %s, want the end of the connection", message)
			}
		case <-late:
			c.t.Fatal("connection stays open, want it closed")
		}
	}
}
