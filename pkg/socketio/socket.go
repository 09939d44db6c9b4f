package socketio

// The socket: one client's connection to one namespace, as the application sees it. connect.go, inbox.go,
// hold.go and ack.go hold its parts.

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// Handshake is the data that a client sent when it connected.
type Handshake struct {
	// Auth is the payload of the CONNECT packet, or "{}" if it was empty. It is nil after the connection
	// handlers have returned: credentials should not stay in memory longer than needed.
	Auth       json.RawMessage
	Query      url.Values
	Header     http.Header
	RemoteAddr string
	Time       time.Time
}

// Handler is called with the arguments of an event, for each socket one at a time and in order.
// ack acknowledges the event; it does nothing if the client did not request an acknowledgement or has received one.
type Handler func(args Args, ack Ack)

// Ack acknowledges an event.
type Ack func(args ...any) error

// Socket is one client's connection to one namespace. Its methods are safe for concurrent use.
//
// Its handlers, from the connection handlers to the last OnDisconnect handler, run one at a time.
// They may block; that delays only the socket's own events.
type Socket struct {
	id     string
	nsp    *Namespace
	client *client

	accepted atomic.Bool // the CONNECT answer is or will be sent

	mu           sync.Mutex
	state        socketState
	auth         json.RawMessage
	answer       []byte              // extra members of the CONNECT answer
	early        []*engineio.Message // sent with Emit before the CONNECT answer
	held         holding
	rooms        []string
	handlers     map[string]Handler
	onDisconnect []func(reason string)
	data         any
	acks         acks
	inbox        inbox
	cancel       context.CancelFunc // of the middlewares' context
	done         chan struct{}      // created on demand
	idSubscribed bool               // the adapter is subscribed to the ID
	listedOnce   bool               // was added to the namespace
}

type socketState uint8

const (
	socketConnecting socketState = iota
	socketConnected
	socketClosed
)

// newSocket returns a socket that is connecting: it holds broadcasts until the CONNECT answer.
func newSocket(nsp *Namespace, c *client) *Socket {
	s := &Socket{id: randomID(), nsp: nsp, client: c}
	s.held.on = true
	s.inbox.running = true // events wait for the connection handlers
	return s
}

// randomID returns 20 characters. Unlike a session ID it is not secret.
func randomID() string {
	var b [15]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// ID returns an identifier that is unique in the namespace on all nodes. It changes with each connection.
func (s *Socket) ID() string { return s.id }

// Namespace returns the namespace that the socket belongs to.
func (s *Socket) Namespace() *Namespace { return s.nsp }

// SessionID returns the identifier of the Engine.IO session, which must be disclosed to the client only.
func (s *Socket) SessionID() string { return s.client.session.ID() }

// Transport returns "polling" or "websocket".
func (s *Socket) Transport() string { return s.client.session.Transport() }

// Handshake returns the data that the client sent when it connected.
func (s *Socket) Handshake() *Handshake {
	s.mu.Lock()
	auth := s.auth
	s.mu.Unlock()
	r := s.client.session.Request()
	return &Handshake{Auth: auth, Query: r.Query(), Header: r.Header(), RemoteAddr: r.RemoteAddr, Time: r.Time}
}

// Done is closed when the socket has left its namespace.
func (s *Socket) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		s.done = make(chan struct{})
		if s.state == socketClosed {
			close(s.done)
		}
	}
	return s.done
}

// Data returns the value of the last SetData.
func (s *Socket) Data() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data
}

// SetData stores a value for the application.
func (s *Socket) SetData(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = v
}

// On sets or replaces the handler of an event. Handlers set by connection handlers receive all
// events.
func (s *Socket) On(event string, fn Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers == nil {
		s.handlers = make(map[string]Handler)
	}
	s.handlers[event] = fn
}

// OnDisconnect adds a handler that is called once, after the last event, when the socket has left its
// rooms. It is not called for a socket that was refused.
func (s *Socket) OnDisconnect(fn func(reason string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onDisconnect = append(s.onDisconnect, fn)
}

// Join adds the socket to rooms. When it returns nil, later broadcasts to them on any node reach the socket.
// It waits for at most Options.JoinTimeout.
func (s *Socket) Join(rooms ...string) error {
	ctx, cancel := context.WithTimeout(s.nsp.srv.ctx, s.nsp.srv.opts.JoinTimeout)
	defer cancel()
	return s.JoinContext(ctx, rooms...)
}

// JoinContext is Join with ctx instead of Options.JoinTimeout. On an error the socket has joined none of the new rooms.
func (s *Socket) JoinContext(ctx context.Context, rooms ...string) error {
	rooms = s.notJoined(rooms)
	if len(rooms) == 0 {
		return nil
	}
	if err := s.nsp.adapter.Subscribe(ctx, rooms...); err != nil {
		return err
	}
	spare, err := s.addTo(rooms)
	if len(spare) > 0 {
		s.nsp.adapter.Unsubscribe(spare...)
	}
	return err
}

// notJoined returns the rooms that the socket is not in, each once.
func (s *Socket) notJoined(rooms []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range rooms {
		if !slices.Contains(s.rooms, r) && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// addTo adds the socket to rooms. It returns the rooms whose subscription is not needed after all.
func (s *Socket) addTo(rooms []string) (spare []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == socketClosed {
		return rooms, ErrDisconnected
	}
	for _, r := range rooms {
		if slices.Contains(s.rooms, r) { // joined concurrently
			spare = append(spare, r)
			continue
		}
		s.rooms = append(s.rooms, r)
		s.nsp.rooms.add(r, s)
	}
	return spare, nil
}

// Leave removes the socket from rooms.
func (s *Socket) Leave(rooms ...string) {
	s.mu.Lock()
	var left []string
	for _, r := range rooms {
		if i := slices.Index(s.rooms, r); i >= 0 {
			s.rooms = slices.Delete(s.rooms, i, i+1)
			s.nsp.rooms.remove(r, s)
			left = append(left, r)
		}
	}
	s.mu.Unlock()
	if len(left) > 0 {
		s.nsp.adapter.Unsubscribe(left...)
	}
}

// Rooms returns the rooms that the socket has joined.
func (s *Socket) Rooms() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rooms)
}

// Emit sends an event to the client. An argument of type json.RawMessage is sent unchanged; []byte becomes
// a binary attachment, also inside map[string]any and []any; other values are
// encoded as JSON. It does not block. Events emitted before the client is connected are sent after the CONNECT
// answer.
func (s *Socket) Emit(event string, args ...any) error {
	if reservedEvent(event) {
		return ErrReserved
	}
	data, attachments, err := encodeEvent(event, args)
	if err != nil {
		return err
	}
	return s.send(encodeMessage(packet{typ: typeEvent, nsp: s.nsp.wireName, data: data}, attachments))
}

// send sends a packet to this socket only; before the CONNECT answer it queues the packet.
func (s *Socket) send(m *engineio.Message) error {
	s.mu.Lock()
	switch s.state {
	case socketClosed:
		s.mu.Unlock()
		return ErrDisconnected
	case socketConnecting:
		s.early = append(s.early, m)
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return s.client.session.Send(m)
}

// Disconnect removes the socket from its namespace and sends a DISCONNECT packet, after which clients do not
// reconnect automatically. closeConnection closes the session too, with all its sockets.
func (s *Socket) Disconnect(closeConnection bool) {
	if closeConnection {
		s.client.disconnect()
		return
	}
	s.leaveNamespace()
}

// CloseConnection closes the socket's session, with all its sockets, without DISCONNECT packets: the client
// reconnects automatically, as after a lost connection.
func (s *Socket) CloseConnection() { s.client.session.Close() }

// leaveNamespace disconnects the socket as its server does: with a DISCONNECT packet.
func (s *Socket) leaveNamespace() {
	p := packet{typ: typeDisconnect, nsp: s.nsp.wireName}
	if s.accepted.Load() {
		s.client.drop(s)                                      // first, so that the client may rejoin immediately
		_ = s.send(engineio.NewMessage(appendPacket(nil, p))) // an error means that it is closed already
	}
	s.close(ReasonServerDisconnect)
}

// close removes the socket from its namespace; every disconnect ends here.
func (s *Socket) close(reason string) {
	s.mu.Lock()
	if s.state == socketClosed {
		s.mu.Unlock()
		return
	}
	s.state = socketClosed
	left := s.rooms
	cancel := s.cancel
	waiting := s.acks.takeAll()
	for _, r := range left {
		s.nsp.rooms.remove(r, s)
	}
	if s.idSubscribed {
		left = append(left, s.id)
	}
	s.rooms = nil
	s.held = holding{}
	s.auth = nil
	if !s.accepted.Load() {
		s.early = nil // otherwise it is sent after the CONNECT answer, including the DISCONNECT packet
	}
	if s.done != nil {
		close(s.done)
	}
	s.inbox.freeSpace()
	s.mu.Unlock()

	if cancel != nil {
		cancel()
	}
	s.client.forget(s)
	s.nsp.forget(s)
	if len(left) > 0 {
		s.nsp.adapter.Unsubscribe(left...)
	}
	for _, fn := range waiting {
		fn(Args{}, ErrDisconnected)
	}
	s.dispatchDisconnect(reason)
}
