package socketio

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// client is one session and its sockets, at most one per namespace. It implements engineio.Handler.
type client struct {
	srv     *Server
	session *engineio.Session
	in      decoder // used by the session's reader only

	mu      sync.Mutex
	closed  bool
	sockets []*Socket // also those that are still connecting
	left    []*Namespace
}

func (srv *Server) newClient(s *engineio.Session) engineio.Handler {
	srv.wg.Add(1) // until OnClose, so that goroutines started meanwhile are waited for
	return &client{srv: srv, session: s, in: decoder{maxAttachments: srv.opts.MaxAttachments}}
}

// OnMessage decodes one message and acts on the packet that it completes. An error is a breach of the
// protocol and closes the session.
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

// connectedSocket returns the socket that p is for. The protocol demands a CONNECT packet first; but a
// packet that has crossed the end of its socket is no breach, and has no socket.
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

func (c *client) find(nsp []byte) *Socket {
	for _, s := range c.sockets {
		if s.nsp.name == string(nsp) {
			return s
		}
	}
	return nil
}

// onConnect starts joining a namespace. Middlewares may take their time, so they get a goroutine of
// their own.
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

// begin adds a connecting socket, for which it counts a goroutine. It returns none if there is nothing to
// connect to.
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

// refuse answers a CONNECT packet with CONNECT_ERROR.
func (c *client) refuse(nsp string, err error) {
	p := packet{typ: typeConnectError, nsp: []byte(nsp), data: connectErrorData(err)}
	_ = c.session.Send(engineio.NewMessage(appendPacket(nil, p))) // a closed session needs no answer
	c.srv.opts.Metrics.SocketRefused(nsp)
}

// forget drops a socket that has left its namespace. A session without any has to join one again in time.
func (c *client) forget(s *Socket) {
	c.drop(s)
	if c.joined() {
		return
	}
	c.session.Unconfirm()
	if c.joined() { // meanwhile: that has counted for nothing if it came before
		c.session.Confirm()
	}
}

// joined reports whether the client is in a namespace.
func (c *client) joined() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.sockets, func(s *Socket) bool { return s.accepted.Load() })
}

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

// end returns the sockets, and lets no other follow.
func (c *client) end() []*Socket {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return slices.Clone(c.sockets)
}

// disconnect ends all sockets and then the session.
func (c *client) disconnect() {
	for _, s := range c.end() {
		s.leaveNamespace()
	}
	c.session.Close()
}

func stack() string { return string(debug.Stack()) }

// info is the JSON form of a handshake, as the official servers exchange it.
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
		"address": r.RemoteAddr, "issued": r.Time.UnixMilli(), "time": r.Time.UTC().Format("Mon Jan 02 2006 15:04:05 GMT-0700"),
		"url": "", "secure": false, "xdomain": false,
	})
	return data
}
