package legacy

// In the child: the rooms of old clients, as a node of the Redis cluster adapter.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

var errTooMany = errors.New("too many sockets of one visitor")

// hub holds the rooms and their sockets. It is the Local of a socketio.Adapter, which makes the child an
// ordinary node of the cluster.
type hub struct {
	adapter    socketio.Adapter
	maxSockets int

	mu      sync.Mutex
	sockets map[string]*socket // by session id
	rooms   map[string]*room
}

// room is the sockets of one visitor. hub.mu guards it.
type room struct {
	members map[*socket]struct{}
	last    uint64 // offset of the last event that was delivered
}

// newHub returns a hub without rooms, and its adapter.
func newHub(adapter func(socketio.Local) socketio.Adapter, maxSockets int) *hub {
	h := &hub{maxSockets: maxSockets, sockets: make(map[string]*socket), rooms: make(map[string]*room)}
	h.adapter = adapter(h)
	return h
}

// join joins a client to its room. When it returns nil, events published to the room reach the client.
func (h *hub) join(ctx context.Context, s *socket) error {
	if err := h.adapter.Subscribe(ctx, s.room); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[s.room]
	if r != nil && h.maxSockets > 0 && len(r.members) >= h.maxSockets {
		h.adapter.Unsubscribe(s.room)
		return errTooMany
	}
	if r == nil {
		r = &room{members: make(map[*socket]struct{})}
		h.rooms[s.room] = r
	}
	r.members[s] = struct{}{}
	h.sockets[s.conn.ID()] = s
	return nil
}

// leave removes a client from its room, if it has joined one.
func (h *hub) leave(sid string) {
	h.mu.Lock()
	s := h.sockets[sid]
	if s != nil {
		delete(h.sockets, sid)
		if r := h.rooms[s.room]; len(r.members) == 1 {
			delete(h.rooms, s.room)
		} else {
			delete(r.members, s)
		}
	}
	h.mu.Unlock()
	if s != nil {
		h.adapter.Unsubscribe(s.room)
		s.stop()
	}
}

// all returns all sockets.
func (h *hub) all() []*socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.selected(socketio.Selection{})
}

// joined reports whether a client is in its room.
func (h *hub) joined(sid string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sockets[sid] != nil
}

// selected returns the sockets that sel matches. Callers must hold mu.
func (h *hub) selected(sel socketio.Selection) []*socket {
	var out []*socket
	for sid, s := range h.sockets {
		named := func(name string) bool { return name == s.room || name == sid }
		if (len(sel.Rooms) == 0 || slices.ContainsFunc(sel.Rooms, named)) && !slices.ContainsFunc(sel.Except, named) {
			out = append(out, s)
		}
	}
	return out
}

// recipients returns the recipients of a broadcast, without a scan of all sockets in the common case of one
// room. It returns none for an event that was delivered before. Callers must hold mu.
func (h *hub) recipients(b *socketio.Broadcast) []*socket {
	if len(b.Rooms) != 1 || len(b.Except) > 0 {
		return h.selected(b.Selection)
	}
	r := h.rooms[b.Rooms[0]]
	if r == nil {
		return h.selected(b.Selection)
	}
	if offset := metadata.Of(b).Offset; offset > 0 {
		if offset <= r.last {
			return nil // published twice
		}
		r.last = offset
	}
	out := make([]*socket, 0, len(r.members))
	for s := range r.members {
		out = append(out, s)
	}
	return out
}

// Name implements socketio.Local.
func (h *hub) Name() string { return namespace }

// HandleBroadcast implements socketio.Local. Binary events are not supported.
func (h *hub) HandleBroadcast(b *socketio.Broadcast) int {
	if len(b.Attachments) > 0 {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	recipients := h.recipients(b)
	if len(recipients) == 0 {
		return 0
	}
	packet := appendASCII([]byte(packetEvent), b.Data)
	for _, s := range recipients {
		s.send(packet)
	}
	return len(recipients)
}

// HandleBroadcastWithAck implements socketio.Local. Acknowledgements are not supported.
func (h *hub) HandleBroadcastWithAck(b *socketio.Broadcast, _ time.Duration, _ func(json.RawMessage)) int {
	h.HandleBroadcast(b)
	return 0
}

// Apply implements socketio.Local. It can disconnect sockets, but not change their rooms.
func (h *hub) Apply(_ context.Context, c socketio.Command) error {
	if !c.Disconnect {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.selected(c.Selection) {
		s.disconnect()
	}
	return nil
}

// disconnect disconnects all sockets of a visitor, in any application.
func (h *hub) disconnect(chatUserID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sockets {
		if strings.HasSuffix(s.room, "-"+chatUserID) {
			s.disconnect()
		}
	}
}

// LocalSockets implements socketio.Local.
func (h *hub) LocalSockets(sel socketio.Selection) []socketio.SocketInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []socketio.SocketInfo{}
	for _, s := range h.selected(sel) {
		out = append(out, socketio.SocketInfo{
			ID: s.conn.ID(), Handshake: json.RawMessage("{}"), Rooms: []string{s.room}, Data: json.RawMessage("{}"),
		})
	}
	return out
}

// Rooms implements socketio.Local.
func (h *hub) Rooms() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := make([]string, 0, len(h.rooms))
	for name := range h.rooms {
		names = append(names, name)
	}
	return names
}

// ServerSideEvent implements socketio.Local.
func (h *hub) ServerSideEvent(json.RawMessage, func(json.RawMessage)) {}

// appendASCII appends JSON with all non-ASCII characters escaped: in some encodings the library counts bytes
// where old clients count characters.
func appendASCII(dst, data []byte) []byte {
	for len(data) > 0 {
		if data[0] < utf8.RuneSelf {
			dst = append(dst, data[0])
			data = data[1:]
			continue
		}
		r, size := utf8.DecodeRune(data)
		data = data[size:]
		if high, low := utf16.EncodeRune(r); r > 0xffff {
			dst = appendUnit(appendUnit(dst, high), low)
		} else {
			dst = appendUnit(dst, r)
		}
	}
	return dst
}

func appendUnit(dst []byte, unit rune) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[unit>>12&15], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
}
