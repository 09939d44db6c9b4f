package socketio

import (
	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// holding buffers broadcasts to a socket.
type holding struct {
	on     bool
	asked  bool // Hold was called; otherwise held only until the CONNECT answer
	size   int
	events []heldEvent
}

type heldEvent struct {
	message *engineio.Message
	event   *Broadcast
}

// Hold buffers broadcasts to the socket until Release; Emit is not affected. It lets an
// application send missed events before new ones. A connecting socket is held automatically until the CONNECT
// answer; Hold in a middleware extends that until Release. If more than Options.SendBuffer bytes are buffered,
// the session is closed as slow.
func (s *Socket) HoldBroadcasts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held.on, s.held.asked = true, true
}

// Release sends the held broadcasts in order and ends Hold. If keep is not nil, broadcasts for which it
// returns false are dropped.
func (s *Socket) ReleaseBroadcasts(keep func(b *Broadcast) bool) {
	s.releaseBroadcasts(keep)
}

func (s *Socket) releaseBroadcasts(keep func(*Broadcast) bool) {
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

// releaseConnecting ends the automatic hold of a connecting socket, unless Hold was called.
func (s *Socket) releaseConnecting() {
	s.mu.Lock()
	asked := s.held.asked
	s.mu.Unlock()
	if !asked {
		s.releaseBroadcasts(nil)
	}
}

// deliver sends a broadcast to the socket, or buffers it while the socket is held.
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
