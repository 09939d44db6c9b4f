package socketio

// The namespace: which sockets are connected, which handlers the application has set, and the view that the
// adapter has of them (local).

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"
)

// Middleware admits or refuses a socket. It may block, and may use the socket: join rooms, emit,
// set data, add handlers. ctx ends when the client disconnects. A *ConnectError is sent to the client; any
// other error is not disclosed.
type Middleware func(ctx context.Context, s *Socket) error

var errPanicked = errors.New("socketio: middleware panicked")

// Namespace is a separate channel over the connections of a server. Its methods are safe for
// concurrent use.
type Namespace struct {
	srv      *Server
	name     string
	wireName []byte
	adapter  Adapter
	rooms    *rooms

	mu           sync.RWMutex
	middleware   []Middleware
	onConnection []func(*Socket)
	serverSide   func(event string, args Args, ack func(answer any))
	onBroadcast  func(*Broadcast) int
	handlers     map[string]func(*Socket, Args, Ack)
	sockets      map[string]*Socket
}

// newNamespace returns a namespace without sockets, and its adapter.
func newNamespace(srv *Server, name string) *Namespace {
	nsp := &Namespace{
		srv:      srv,
		name:     name,
		wireName: []byte(name),
		rooms:    newRooms(),
		sockets:  make(map[string]*Socket),
	}
	nsp.adapter = srv.opts.Adapter(local{nsp})
	return nsp
}

// Name returns the name, which starts with a slash.
func (n *Namespace) Name() string { return n.name }

// Use appends a middleware.
func (n *Namespace) Use(fn Middleware) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.middleware = append(slices.Clip(n.middleware), fn)
}

// OnConnection adds a handler that is called with each connected socket, after the CONNECT answer and
// before the socket's first event.
func (n *Namespace) OnConnection(fn func(*Socket)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.onConnection = append(slices.Clip(n.onConnection), fn)
}

// On sets the handler of an event for all sockets without a handler of their own for it. It saves the
// memory of Socket.On for each socket. It must be called before the first connection.
func (n *Namespace) On(event string, fn func(s *Socket, args Args, ack Ack)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handlers == nil {
		n.handlers = make(map[string]func(*Socket, Args, Ack))
	}
	n.handlers[event] = fn
}

// handler returns the handler of an event that all sockets share, or nil.
func (n *Namespace) handler(event string) func(*Socket, Args, Ack) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.handlers[event]
}

// OnBroadcast sets a function that is called, instead of EmitLocal, with each broadcast for sockets of this
// node, emitted on any node. fn may drop the broadcast, change it, or call EmitLocal, and returns the number of
// sockets that it was delivered to. fn is called concurrently and must not wait for the network. OnBroadcast
// must be called before the first connection.
func (n *Namespace) OnBroadcast(fn func(b *Broadcast) int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.onBroadcast = fn
}

// EmitLocal sends b to the sockets of this node, bypassing OnBroadcast, and returns their number. It does not
// block.
func (n *Namespace) EmitLocal(b *Broadcast) int { return n.emit(b) }

// handleBroadcast handles every broadcast for the sockets of this node.
func (n *Namespace) handleBroadcast(b *Broadcast) int {
	n.mu.RLock()
	fn := n.onBroadcast
	n.mu.RUnlock()
	if fn == nil {
		return n.emit(b)
	}
	return fn(b)
}

// middlewares returns the middlewares. The slice is never changed: Use appends to a copy.
func (n *Namespace) middlewares() []Middleware {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.middleware
}

// connectionHandlers returns the handlers of OnConnection. The slice is never changed.
func (n *Namespace) connectionHandlers() []func(*Socket) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.onConnection
}

// admit adds a socket to the namespace, unless it has been closed.
func (n *Namespace) admit(s *Socket) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == socketClosed {
		return false
	}
	n.sockets[s.id] = s
	n.srv.sockets.Add(1)
	s.listedOnce = true
	s.accepted.Store(true) // from now on the client gets a CONNECT answer, followed by s.early
	return true
}

// forget removes a socket that has disconnected.
func (n *Namespace) forget(s *Socket) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sockets[s.id] == s {
		delete(n.sockets, s.id)
		n.srv.sockets.Add(-1)
	}
}

// listed reports whether the socket was ever added to its namespace.
func (s *Socket) listed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listedOnce
}

// Socket returns the socket with an ID on this node, or nil.
func (n *Namespace) Socket(id string) *Socket {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.sockets[id]
}

// Sockets returns the sockets of this node.
func (n *Namespace) Sockets() []*Socket {
	return n.selected(Selection{}, nil)
}

// SocketCount returns the number of sockets of this node.
func (n *Namespace) SocketCount() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.sockets)
}

// RoomSize returns the number of sockets of this node in a room.
func (n *Namespace) RoomSize(room string) int { return n.rooms.size(room) }

// Rooms returns the rooms with a member on this node.
func (n *Namespace) Rooms() []string { return n.rooms.names() }

// OnServerSideEmit sets the handler of events from ServerSideEmit on other nodes. ack sends an
// acknowledgement; it does nothing if none is requested.
func (n *Namespace) OnServerSideEmit(fn func(event string, args Args, ack func(answer any))) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serverSide = fn
}

// ServerSideEmit sends an event to the other nodes' OnServerSideEmit handlers.
func (n *Namespace) ServerSideEmit(ctx context.Context, event string, args ...any) error {
	data, attachments, err := encodeEvent(event, args)
	if err != nil {
		return err
	}
	if len(attachments) > 0 {
		return errors.Join(ErrEncode, errors.New("binary arguments are not supported between servers"))
	}
	return n.adapter.ServerSideEmit(ctx, data)
}

// selected appends the sockets that sel matches to dst, without duplicates.
func (n *Namespace) selected(sel Selection, dst []*Socket) []*Socket {
	switch len(sel.Rooms) {
	case 0:
		n.mu.RLock()
		for _, s := range n.sockets {
			dst = append(dst, s)
		}
		n.mu.RUnlock()
	case 1:
		dst = n.members(dst, sel.Rooms[0])
	default:
		for _, room := range sel.Rooms {
			dst = n.members(dst, room)
		}
		dst = unique(dst)
	}
	if len(sel.Except) == 0 {
		return dst
	}
	excluded := make(map[*Socket]bool)
	for _, room := range sel.Except {
		for _, s := range n.rooms.append(nil, room) {
			excluded[s] = true
		}
	}
	// A connecting socket can be in rooms while n.sockets does not have it yet; its ID excludes it too.
	return slices.DeleteFunc(dst, func(s *Socket) bool { return excluded[s] || slices.Contains(sel.Except, s.id) })
}

// members appends the sockets of a room, which may be the ID of a socket.
func (n *Namespace) members(dst []*Socket, room string) []*Socket {
	if s := n.Socket(room); s != nil {
		dst = append(dst, s)
	}
	return n.rooms.append(dst, room)
}

// unique removes duplicates: a socket may be in several of the selected rooms.
func unique(sockets []*Socket) []*Socket {
	seen := make(map[*Socket]bool, len(sockets))
	return slices.DeleteFunc(sockets, func(s *Socket) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// local implements Local for the namespace's adapter.
type local struct{ *Namespace }

// LocalSockets implements Local.
func (l local) LocalSockets(sel Selection) []SocketInfo {
	sockets := l.selected(sel, nil)
	infos := make([]SocketInfo, len(sockets))
	for i, s := range sockets {
		infos[i] = s.info()
	}
	return infos
}

// info describes the socket to other nodes, in the format of the official servers.
func (s *Socket) info() SocketInfo {
	s.mu.Lock()
	auth, data := s.auth, s.data
	rooms := append([]string{s.id}, s.rooms...)
	s.mu.Unlock()
	encoded, err := json.Marshal(data)
	if err != nil || data == nil {
		encoded = json.RawMessage("{}")
	}
	if auth == nil {
		auth = json.RawMessage("{}")
	}
	return SocketInfo{ID: s.id, Handshake: s.client.info(auth), Rooms: rooms, Data: encoded}
}

// HandleBroadcast implements Local.
func (l local) HandleBroadcast(b *Broadcast) int { return l.handleBroadcast(b) }

// HandleBroadcastWithAck implements Local.
func (l local) HandleBroadcastWithAck(b *Broadcast, timeout time.Duration, ack func(json.RawMessage)) int {
	return l.emitWithAck(b, timeout, ack)
}

// Apply implements Local.
func (l local) Apply(ctx context.Context, c Command) error { return l.apply(ctx, c) }

// ServerSideEvent implements Local.
func (l local) ServerSideEvent(data json.RawMessage, ack func(json.RawMessage)) {
	l.mu.RLock()
	fn := l.serverSide
	l.mu.RUnlock()
	if ack == nil {
		ack = func(json.RawMessage) {}
	}
	name, args, err := decodeEvent(data, nil)
	if err != nil || fn == nil {
		ack(json.RawMessage("null")) // the requesting node waits for every node
		return
	}
	l.srv.guard("server-side handler", func() {
		fn(name, args, func(answer any) {
			if data, err := json.Marshal(answer); err == nil {
				ack(data)
			}
		})
	})
}
