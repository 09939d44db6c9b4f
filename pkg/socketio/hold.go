package socketio

import (
	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// holding keeps broadcasts back from a socket.
type holding struct {
	on     bool
	asked  bool // by the application, not only until the CONNECT answer
	size   int
	events []heldEvent
}

type heldEvent struct {
	message *engineio.Message
	event   *Broadcast
}

// Hold keeps broadcasts back from the socket until Release; what is sent with Emit passes. It lets an
// application send missed events before new ones. A socket that is connecting is held by
// itself; Hold in a middleware makes that last until Release. At most Options.SendBuffer bytes are kept,
// more closes the session as slow.
func (s *Socket) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held.on, s.held.asked = true, true
}

// Release sends what was held back, in order, and ends Hold. keep, if not nil, is asked about each event, and those for which it
// returns false are dropped.
func (s *Socket) Release(keep func(b *Broadcast) bool) {
	s.release(keep)
}

func (s *Socket) release(keep func(*Broadcast) bool) {
	for {
		s.mu.Lock()
		events := s.held.events
		if len(events) == 0 {
			s.held = holding{}
			s.mu.Unlock()
			return
		}
		s.held.events, s.held.size = nil, 0
		s.mu.Unlock()
		for _, e := range events {
			if keep == nil || keep(e.event) {
				_ = s.client.session.Send(e.message) // a closed session closes the socket
			}
		}
	}
}

// releaseConnecting ends the hold of a connecting socket, unless the application has asked for it.
func (s *Socket) releaseConnecting() {
	s.mu.Lock()
	asked := s.held.asked
	s.mu.Unlock()
	if !asked {
		s.release(nil)
	}
}

// deliver sends a broadcast to the socket, or holds it back.
func (s *Socket) deliver(m *engineio.Message, b *Broadcast) {
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
	_ = s.client.session.Send(m) // a slow or closed session has closed itself
}
