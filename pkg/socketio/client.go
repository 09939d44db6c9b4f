package socketio

// One session of a client with its sockets, one for each namespace. It dispatches the packets of the
// session.

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// client is a session and its sockets, at most one per namespace. It implements engineio.Handler.
type client struct {
	srv     *Server
	session *engineio.Session
	in      decoder // used by the session's reader only

	mu      sync.Mutex
	closed  bool
	sockets []*Socket // including connecting sockets
	left    []*Namespace
	refused int // CONNECT packets
}

// newClient returns the handler of a new session.
func (srv *Server) newClient(s *engineio.Session) engineio.Handler {
	srv.wg.Add(1) // until OnClose, so that Shutdown also waits for goroutines started in between
	return &client{srv: srv, session: s, in: decoder{maxAttachments: srv.opts.MaxAttachments}}
}

// OnMessage decodes one message and handles the packet that it completes. An error is a protocol
// violation and closes the session.
func (c *client) OnMessage(data []byte, binary bool) error {
	if binary {
		p, attachments, complete, err := c.in.addBinary(data)
		if err != nil || !complete {
			return err
		}
		c.session.AwaitRest(false)
		return c.onPacket(p, attachments)
	}
	p, complete, err := c.in.addText(data)
	if err != nil {
		return err
	}
	if !complete { // do not collect attachments for a namespace that was not joined
		c.session.AwaitRest(true)
		_, err = c.connectedSocket(p)
		return err
	}
	return c.onPacket(p, nil)
}

// onPacket dispatches a packet to the socket of its namespace. An error closes the session.
func (c *client) onPacket(p packet, attachments [][]byte) error {
	if p.typ == typeConnect {
		return c.onConnect(p)
	}
	s, err := c.connectedSocket(p)
	if s == nil {
		return err
	}
	switch p.typ {
	case typeDisconnect:
		if len(p.data) > 0 {
			return fmt.Errorf("%w: DISCONNECT with a payload", errPacket)
		}
		s.close(ReasonClientDisconnect)
		return nil
	case typeEvent, typeBinaryEvent:
		return s.onEvent(p, attachments)
	case typeAck, typeBinaryAck:
		return s.onAck(p, attachments)
	default:
		return fmt.Errorf("%w: type %q from a client", errPacket, p.typ)
	}
}

// connectedSocket returns the socket of p. A packet for a namespace that was never joined is a protocol
// violation; for one that was left, since the packet may have crossed the disconnect, it returns nil.
func (c *client) connectedSocket(p packet) (*Socket, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.find(p.nsp); s != nil && s.accepted.Load() {
		return s, nil
	}
	if slices.ContainsFunc(c.left, func(n *Namespace) bool { return n.name == string(p.nsp) }) {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: namespace %.64q was not joined", errPacket, p.nsp)
}

// find returns the socket of a namespace, or nil.
func (c *client) find(nsp []byte) *Socket {
	for _, s := range c.sockets {
		if s.nsp.name == string(nsp) {
			return s
		}
	}
	return nil
}

// onConnect starts joining a namespace, in a goroutine of its own because middlewares may
// block.
func (c *client) onConnect(p packet) error {
	auth, err := decodeAuth(p.data)
	if err != nil {
		return err
	}
	s, err := c.begin(p)
	if s == nil {
		return err
	}
	s.mu.Lock()
	s.auth = slices.Clone(auth)
	s.mu.Unlock()
	go func() {
		defer c.srv.wg.Done()
		s.connect()
	}()
	return nil
}

// begin adds a connecting socket and adds one to srv.wg for its goroutine. It returns nil if the namespace
// does not exist or the client is closed.
func (c *client) begin(p packet) (*Socket, error) {
	nsp := c.srv.namespace(p.nsp)
	if nsp == nil {
		c.refuse(string(p.nsp), &ConnectError{Message: "Invalid namespace"})
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil
	}
	if c.find(p.nsp) != nil {
		return nil, fmt.Errorf("%w: namespace was joined already", errPacket)
	}
	s := newSocket(nsp, c)
	c.sockets = append(c.sockets, s)
	c.srv.wg.Add(1)
	return s, nil
}

// refuse answers a CONNECT packet with CONNECT_ERROR. It closes the session after the last one that
// Options.MaxConnectErrors allows.
func (c *client) refuse(nsp string, err error) {
	last := c.lastRefusal()
	p := packet{typ: typeConnectError, nsp: []byte(nsp), data: connectErrorData(err)}
	_ = c.session.Send(engineio.NewMessage(appendPacket(nil, p))) // a closed session needs no answer
	c.srv.opts.Metrics.SocketRefused(nsp)
	if last {
		c.session.Close()
	}
}

// lastRefusal counts a refusal. It reports whether no other one is allowed, and then prevents new sockets:
// the client may send a CONNECT packet before the session is closed.
func (c *client) lastRefusal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused++
	last := c.refused == c.srv.opts.MaxConnectErrors
	c.closed = c.closed || last
	return last
}

// forget removes a socket that has left its namespace. A session without sockets must join a namespace again within
// Options.ConnectTimeout.
func (c *client) forget(s *Socket) {
	c.drop(s)
	if c.joined() {
		return
	}
	c.session.Unconfirm()
	if c.joined() { // joined meanwhile: its Confirm may have come before Unconfirm
		c.session.Confirm()
	}
}

// joined reports whether the client has joined a namespace.
func (c *client) joined() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.sockets, func(s *Socket) bool { return s.accepted.Load() })
}

// drop removes a socket that has disconnected, and remembers the namespace that an accepted one has left.
func (c *client) drop(s *Socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.sockets, s); i >= 0 {
		c.sockets = slices.Delete(c.sockets, i, i+1)
	}
	if s.accepted.Load() && !c.closed && !slices.Contains(c.left, s.nsp) {
		c.left = append(c.left, s.nsp)
	}
}

// OnClose disconnects all sockets of the session.
func (c *client) OnClose(reason engineio.Reason) {
	defer c.srv.wg.Done()
	for _, s := range c.end() {
		s.close(string(reason))
	}
}

// end returns the sockets and prevents new ones.
func (c *client) end() []*Socket {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return slices.Clone(c.sockets)
}

// disconnect disconnects all sockets and then closes the session.
func (c *client) disconnect() {
	for _, s := range c.end() {
		s.leaveNamespace()
	}
	c.session.Close()
}

func stack() string { return string(debug.Stack()) }

// info returns the handshake as JSON in the format that official servers exchange.
func (c *client) info(auth json.RawMessage) json.RawMessage {
	r := c.session.Request()
	query, headers := map[string]string{}, map[string]string{}
	for k, v := range r.Query() {
		query[k] = v[0]
	}
	for k, v := range r.Header() {
		headers[k] = v[0]
	}
	data, _ := json.Marshal(map[string]any{ // cannot fail
		"headers": headers, "query": query, "auth": auth,
		"address": r.RemoteAddr,
		"issued":  r.Time.UnixMilli(),
		"time":    r.Time.UTC().Format("Mon Jan 02 2006 15:04:05 GMT-0700"),
		"url":     "", "secure": false, "xdomain": false,
	})
	return data
}
