package engineio

// The session: its state, and the one way to close. It belongs to no transport: polling.go and websocket.go give
// it what they have received. What it sends is in session_write.go, its timeouts are in session_timer.go.

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of Session.Send.
var (
	ErrClosed = errors.New("engineio: session is closed")
	ErrSlow   = errors.New("engineio: send buffer is full")
)

var errHeartbeat = errors.New("engineio: invalid heartbeat direction")

const (
	// closeGrace is the time that a client has to close its side of a closed WebSocket.
	closeGrace = 2 * time.Second
	// leftGrace is how long a poll may arrive after the close packet of its client. The client sent it before, over
	// another connection.
	leftGrace = 50 * time.Millisecond
)

// Handler receives a client's messages, one at a time and in order.
type Handler interface {
	// OnMessage is called with each message; data is valid only during the call. An error closes the
	// session with ReasonParseError.
	OnMessage(data []byte, binary bool) error
	// OnClose is called once, possibly within Send or Close. It must not wait for the client. The session may
	// be closed by another goroutine while a message is on its way to OnMessage: that one message, and no
	// further one, may arrive after OnClose.
	OnClose(reason Reason)
}

// OpenFunc is called with each new session before its first packet and returns the session's handler.
type OpenFunc func(*Session) Handler

// state is the life of a session; it only moves forward.
type state uint8

const (
	stateOpen    state = iota
	stateClosing       // closed for both layers; the last bytes may not be sent yet
	stateClosed
)

// Session is one Engine.IO connection over any transport. Its methods are safe for concurrent use. It begins with the
// handshake; once it is registered, close is its only end, and OnClose of its handler is called once.
type Session struct {
	srv     *Server
	id      string
	handler Handler
	request Request

	compresses atomic.Bool // ws has negotiated compression; readable without mu

	mu           sync.Mutex // guards the fields up to packets
	state        state
	confirmed    bool
	probing      bool // an upgrade is in progress or done
	upgrading    bool // the probe was answered, waiting for the upgrade packet
	posting      bool // a POST request is being read
	writing      bool // a goroutine has the write turn: it alone writes to ws
	awaitingPong bool
	left         bool    // the client has sent a close packet
	lastPoll     bool    // closed, and kept for polls: they get the queue, and then the last packet
	ws           *wsConn // nil while the transport is polling
	probe        *wsConn // a WebSocket before its upgrade packet
	poll         chan struct{}
	queue        []*Message
	pong         *Message         // response to the client's last ping frame; earlier ones need none (RFC 6455 §5.5.3)
	queued       int              // cost of the accepted messages not yet written to the socket
	heartbeat    time.Duration    // when the last ping was sent or the last pong arrived
	opened       time.Duration    // when the session was opened or Unconfirm was called
	awaited      [2]time.Duration // by partial: since when the rest is awaited; 0: not awaited
	packets      packetCount      // used only by the running POST request

	address string
	waiting *unconfirmedEntry // guarded by unconfirmed.mu; nil once confirmed

	timer wheelEntry
}

// packetCount counts the packets of a polling client within the second that started at second.
type packetCount struct {
	second time.Duration
	n      int
}

// ID returns the session's identifier, which must be disclosed to the client only.
func (s *Session) ID() string { return s.id }

// Request returns the request that opened the session.
func (s *Session) Request() *Request { return &s.request }

// Transport returns "polling" or "websocket".
func (s *Session) Transport() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transportLocked()
}

// transportLocked is Transport. Callers must hold mu.
func (s *Session) transportLocked() string {
	if s.ws != nil {
		return transportWebSocket
	}
	return transportPolling
}

// Confirm keeps the session open beyond Options.OpenTimeout. If Options.MaxConfirmed is reached, it returns
// false and changes nothing.
func (s *Session) Confirm() bool {
	s.mu.Lock()
	if s.state != stateOpen || s.confirmed {
		s.mu.Unlock()
		return true
	}
	if !s.srv.takePlace() {
		s.mu.Unlock()
		return false
	}
	s.confirmed = true
	s.mu.Unlock()
	s.srv.unconfirmed.remove(s)
	return true
}

// Unconfirm reverts Confirm: the session is closed if it is not confirmed again within Options.OpenTimeout.
func (s *Session) Unconfirm() {
	s.mu.Lock()
	if s.state != stateOpen || !s.confirmed {
		s.mu.Unlock()
		return
	}
	s.confirmed = false
	s.opened = s.srv.wheel.now()
	s.srv.confirmed.Add(-1)
	next := s.nextTimerLocked()
	s.mu.Unlock()
	s.srv.wheel.schedule(s, next)
	s.srv.unconfirmed.add(s)
}

// closeUnconfirmed closes a session to make room for another, unless it was confirmed meanwhile.
func (s *Session) closeUnconfirmed() {
	if s.isUnconfirmed() {
		s.close(ReasonUnconfirmed, closeNormal)
	}
}

// isUnconfirmed reports whether the session is open and not confirmed.
func (s *Session) isUnconfirmed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == stateOpen && !s.confirmed
}

// Buffered returns the number of bytes queued for the client, including overhead.
func (s *Session) Buffered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued
}

// Send sends m to the client, in order and without blocking: bytes that the socket does not accept immediately are
// queued. If the queue would exceed the send buffer, Send closes the session with ReasonSlow and returns
// ErrSlow. A single message larger than the buffer is accepted if the queue is empty.
func (s *Session) Send(m *Message) error { return s.send(m, false) }

// SendVolatile is Send, but drops m if it cannot be sent immediately.
func (s *Session) SendVolatile(m *Message) error { return s.send(m, true) }

// onPacket handles a packet of the session's transport (protocol, "Protocol").
func (s *Session) onPacket(p Packet) error {
	switch p.Type {
	case MessageType:
		if !s.isOpen() {
			return nil
		}
		if err := s.handler.OnMessage(p.Data, p.Binary); err != nil {
			return errors.Join(ErrPacket, err)
		}
	case Pong:
		s.onPong()
	case Ping:
		return errHeartbeat
	case Close:
		return errPeerLeft
	}
	return nil
}

// isOpen reports whether the session is open.
func (s *Session) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == stateOpen
}

// Close closes the session with ReasonForced after sending the queue.
func (s *Session) Close() { s.close(ReasonForced, closeNormal) }

// CloseSlow closes the session with ReasonSlow, for a layer above with a buffer of its own that is full.
func (s *Session) CloseSlow() { s.close(ReasonSlow, closeNormal) }

// close ends stateOpen; every end of a session goes through it. Unless the reason is abrupt, it first sends
// the queue and a close packet. The sid becomes unknown before the handler and the client are notified; only
// a session that owes its client a poll is kept for it: one closed by the server, and for leftGrace one closed by the
// client.
func (s *Session) close(reason Reason, code closeCode) {
	s.mu.Lock()
	if s.state != stateOpen {
		s.mu.Unlock()
		return
	}
	s.state = stateClosing
	if s.confirmed {
		s.srv.confirmed.Add(-1)
	}
	owed := s.poll == nil || len(s.queue) > 0 && !s.left // one more poll than the waiting one, if any
	s.lastPoll = s.ws == nil && owed && (reason == ReasonForced || reason == ReasonShutdown || s.left)
	grace := s.srv.opts.PingTimeout
	if s.left {
		grace = leftGrace
		s.queue, s.queued = nil, 0
	}
	if !s.lastPoll {
		s.srv.retire(s)
	}
	ws := s.ws
	probe := s.probe
	if s.upgradeAnsweredLocked() {
		probe = nil
	}
	transport := s.transportLocked()
	var last *Message // to be written by this goroutine
	if ws != nil && !reason.abrupt() {
		last = s.lastWordLocked(closeFrame(code))
	}
	idle := s.ws == nil && s.poll == nil && !s.lastPoll // nothing left to send
	s.wakeLocked()
	s.mu.Unlock()

	s.srv.unconfirmed.remove(s)
	if probe != nil {
		probe.conn.Close()
	}
	s.srv.sessionClosed(transport, reason)
	s.handler.OnClose(reason)
	if reason.abrupt() && !s.lastPoll || idle {
		s.terminate()
		return
	}
	// Time limit for the last poll or a slow socket.
	s.srv.wheel.schedule(s, s.srv.wheel.now()+grace)
	if last != nil {
		s.writeDirect(ws, last)
	}
}

// lastWordLocked returns m if the caller got the write turn and must write it; otherwise it queues m.
func (s *Session) lastWordLocked(m *Message) *Message {
	s.queued += m.cost()
	if s.writing {
		s.queue = append(s.queue, m)
		return nil
	}
	s.writing = true
	return m
}

// terminate releases the resources of a closing session.
func (s *Session) terminate() {
	s.mu.Lock()
	if s.state == stateClosed {
		s.mu.Unlock()
		return
	}
	s.state = stateClosed
	s.queue = nil
	s.pong = nil
	s.queued = 0
	ws := s.ws
	probe := s.probe
	s.wakeLocked()
	s.mu.Unlock()
	s.srv.forget(s)
	if probe != nil {
		probe.conn.Close()
	}
	if ws != nil {
		ws.conn.Close()
		ws.unwatch()
	}
}

// readerEnded must be called by the reader of c when it stops.
func (s *Session) readerEnded(c *wsConn, err error) {
	if c.probing {
		s.probeEnded()
		return
	}
	reason, code := ending(err)
	s.close(reason, code)
	if !reason.abrupt() && !errors.Is(err, errTooMany) {
		c.drain()
	}
	s.terminate()
}

// endIdlePolling terminates a closed session that has no pending request: after the shutdown of the server none
// would arrive.
func (s *Session) endIdlePolling() {
	s.mu.Lock()
	idle := s.ws == nil && s.poll == nil && !s.upgradeAnsweredLocked()
	s.mu.Unlock()
	if idle {
		s.terminate()
	}
}
