package socketio

// The last step of a broadcast: enqueue gives it to the session of a socket, or holds it back while the
// application sends what the client has missed. broadcast.go calls it for each socket of a room.

import (
	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// holding buffers broadcasts to a socket. Socket.mu guards it.
type holding struct {
	on     bool
	asked  bool // HoldBroadcasts was called; otherwise held only until the CONNECT answer
	size   int
	events []heldEvent
}

// heldEvent is a broadcast with its encoded form, which all sockets share.
type heldEvent struct {
	message *engineio.Message
	event   *Broadcast
}

// HoldBroadcasts buffers broadcasts to the socket until ReleaseBroadcasts; Emit is not affected. It lets an
// application send missed events before new ones. A connecting socket is held automatically until the CONNECT
// answer; HoldBroadcasts in a middleware extends that until ReleaseBroadcasts. If more than Options.SendBuffer
// bytes are buffered, the session is closed as slow.
func (s *Socket) HoldBroadcasts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held.on = true
	s.held.asked = true
}

// ReleaseBroadcasts sends the held broadcasts in order and ends HoldBroadcasts. If keep is not nil, broadcasts for
// which it returns false are dropped.
func (s *Socket) ReleaseBroadcasts(keep func(b *Broadcast) bool) {
	s.releaseBroadcasts(keep)
}

// releaseBroadcasts sends what is held until nothing is left. Broadcasts that come meanwhile are held too, so that
// they follow the older ones; no lock is held while the session queues.
func (s *Socket) releaseBroadcasts(keep func(*Broadcast) bool) {
	for {
		s.mu.Lock()
		events := s.held.events
		if len(events) == 0 {
			s.held = holding{}
			s.mu.Unlock()
			return
		}
		s.held.events = nil
		s.held.size = 0
		s.mu.Unlock()
		for _, e := range events {
			if keep == nil || keep(e.event) {
				_ = s.client.session.Send(e.message) // a closed session closes the socket
			}
		}
	}
}

// releaseConnecting ends the automatic hold of a connecting socket, unless HoldBroadcasts was called.
func (s *Socket) releaseConnecting() {
	s.mu.Lock()
	asked := s.held.asked
	s.mu.Unlock()
	if !asked {
		s.releaseBroadcasts(nil)
	}
}

// enqueue queues a broadcast in the socket's session, or buffers it while broadcasts are held.
func (s *Socket) enqueue(m *engineio.Message, b *Broadcast) {
	s.mu.Lock()
	if s.held.on {
		full := s.held.size > 0 && s.held.size+m.Size() > s.nsp.srv.opts.SendBuffer
		if !full {
			s.held.events = append(s.held.events, heldEvent{m, b})
			s.held.size += m.Size()
		}
		s.mu.Unlock()
		if full {
			s.client.session.CloseSlow()
		}
		return
	}
	s.mu.Unlock()
	if b.Volatile {
		_ = s.client.session.SendVolatile(m)
		return
	}
	_ = s.client.session.Send(m) // the session closes itself if it is slow
}
