package engineio

import (
	"errors"
	"slices"
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

// closeGrace is how long a closed WebSocket may take to end its side.
const closeGrace = 2 * time.Second

// Handler receives what a client sends. Its calls come one at a time, in order.
type Handler interface {
	// OnMessage is called with each message; data is valid only during the call. An error closes the
	// session with ReasonParseError.
	OnMessage(data []byte, binary bool) error
	// OnClose is called once, possibly from within Send or Close. It must not wait for the client.
	OnClose(reason Reason)
}

// OpenFunc is told of each new session before its first packet and returns what handles it.
type OpenFunc func(*Session) Handler

type state uint8

const (
	stateOpen    state = iota
	stateClosing       // closed for both layers; the last bytes may still be on their way
	stateClosed
)

// Session is one Engine.IO connection, whatever its transport. Its methods are safe for concurrent use.
type Session struct {
	srv     *Server
	id      string
	handler Handler
	request Request

	compresses atomic.Bool // ws has negotiated compression; known without the lock

	mu           sync.Mutex
	state        state
	confirmed    bool
	probing      bool // a WebSocket may become the transport, or has
	upgrading    bool // a probe was answered, the upgrade packet is awaited
	posting      bool // a POST request is being read
	writing      bool // somebody has the write turn of ws
	awaitingPong bool
	left         bool    // the client has said that it leaves
	ws           *wsConn // nil while the transport is polling
	probe        *wsConn // a WebSocket that has not upgraded yet
	poll         chan struct{}
	queue        []*Message
	queued       int           // bytes accepted and not yet handed to the kernel
	heartbeat    time.Duration // when the last ping was sent or the last pong came
	opened       time.Duration

	timer wheelEntry
}

// ID returns the session's identifier, which only its client may know.
func (s *Session) ID() string { return s.id }

// Request returns the request that opened the session.
func (s *Session) Request() *Request { return &s.request }

// Transport returns "polling" or "websocket".
func (s *Session) Transport() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transportLocked()
}

func (s *Session) transportLocked() string {
	if s.ws != nil {
		return transportWebSocket
	}
	return transportPolling
}

// Confirm keeps the session open beyond Options.OpenTimeout.
func (s *Session) Confirm() {
	s.mu.Lock()
	s.confirmed = true
	s.mu.Unlock()
}

// Buffered returns the number of bytes that wait for the client.
func (s *Session) Buffered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued
}

// Send hands m to the client, in order and without waiting: what the socket does not take at once is
// queued. If the queue would exceed the send buffer the session is closed with ReasonSlow and ErrSlow
// returned. A single message larger than the buffer passes if nothing else waits.
func (s *Session) Send(m *Message) error { return s.send(m, false) }

// SendVolatile is Send, but drops m if it could not leave at once.
func (s *Session) SendVolatile(m *Message) error { return s.send(m, true) }

func (s *Session) send(m *Message, volatile bool) error {
	if s.compresses.Load() && m.Size() >= s.srv.opts.CompressFrom {
		m.compress(&s.srv.pools.deflaters, s.srv.opts.CompressFrom) // not under the lock
	}
	s.mu.Lock()
	if s.state != stateOpen {
		s.mu.Unlock()
		return ErrClosed
	}
	if volatile && !s.writableLocked() {
		s.mu.Unlock()
		return nil
	}
	if s.queued > 0 && s.queued+m.Size() > s.srv.opts.SendBuffer {
		s.mu.Unlock()
		s.close(ReasonSlow, closeNormal)
		return ErrSlow
	}
	if ws := s.ws; ws != nil && !s.writing {
		s.writing = true
		s.queued += m.Size()
		s.mu.Unlock()
		s.writeDirect(ws, m)
		return nil
	}
	s.enqueueLocked(m)
	s.mu.Unlock()
	return nil
}

func (s *Session) writableLocked() bool {
	if s.ws != nil {
		return !s.writing
	}
	return s.poll != nil && len(s.queue) == 0
}

func (s *Session) enqueueLocked(m *Message) {
	s.queue = append(s.queue, m)
	s.queued += m.Size()
	s.wakeLocked()
}

// sendRaw sends a WebSocket control frame if the session has not ended.
func (s *Session) sendRaw(m *Message) {
	_ = s.send(m, false)
}

// writeDirect writes m from the calling goroutine, which holds the write turn. What the socket does not
// take, and what was queued meanwhile, is left to a goroutine that may wait.
func (s *Session) writeDirect(ws *wsConn, m *Message) {
	wire := m.wireFor(ws)
	n, err := ws.writeNow(wire)
	if err != nil {
		s.close(ReasonTransportError, closeNormal)
		s.terminate()
		return
	}
	s.mu.Lock()
	s.queued -= m.Size() - len(wire[n:])
	if n == len(wire) && len(s.queue) == 0 {
		s.turnEndedLocked(ws)
		s.mu.Unlock()
		return
	}
	if s.state == stateClosed {
		s.mu.Unlock()
		return
	}
	s.srv.wg.Add(1) // the reader is still counted, so the server cannot have finished waiting
	s.mu.Unlock()
	go s.writeRest(ws, wire[n:])
}

// turnEndedLocked gives the write turn back, or ends the connection if that was the last of it.
func (s *Session) turnEndedLocked(ws *wsConn) {
	s.writing = false
	if s.state != stateClosing {
		return
	}
	end := s.srv.wheel.now() // a closed connection has no events, so nobody else would notice
	if !ws.finish() {
		end += closeGrace
	}
	s.srv.wheel.schedule(s, end)
}

// writeRest writes rest and the queue until nothing is left.
func (s *Session) writeRest(ws *wsConn, rest []byte) {
	defer s.srv.wg.Done()
	buf := s.srv.pools.batches.Get().(*[]byte)
	defer s.srv.pools.batches.Put(buf)
	for {
		s.mu.Lock()
		batch, size := s.batchLocked(ws, (*buf)[:0], rest)
		if len(batch) == 0 || s.state == stateClosed {
			s.turnEndedLocked(ws)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if err := ws.writeAll(batch, s.srv.opts.WriteTimeout); err != nil {
			s.close(writeFailure(err), closeNormal)
			s.terminate()
			return
		}
		s.mu.Lock()
		s.queued -= size
		s.mu.Unlock()
		rest = nil
	}
}

// batchLocked moves rest and queued messages into one write. A large first piece is not copied. size is what
// they count against the send buffer.
func (s *Session) batchLocked(ws *wsConn, buf, rest []byte) (batch []byte, size int) {
	if len(rest) > cap(buf) {
		return rest, len(rest)
	}
	buf, size = append(buf, rest...), len(rest)
	i := 0
	for ; i < len(s.queue); i++ {
		wire := s.queue[i].wireFor(ws)
		if len(buf) > 0 && len(buf)+len(wire) > cap(buf) {
			break
		}
		size += s.queue[i].Size()
		if len(wire) > cap(buf) {
			buf, i = wire, i+1
			break
		}
		buf = append(buf, wire...)
	}
	s.queue = slices.Delete(s.queue, 0, i)
	if len(s.queue) == 0 {
		s.queue = nil // an idle session keeps no queue
	}
	return buf, size
}

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

func (s *Session) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == stateOpen
}

// onPong notes the client's life sign; the wheel plans the next ping when its hand comes by.
func (s *Session) onPong() {
	now := s.srv.wheel.now()
	s.mu.Lock()
	if s.awaitingPong {
		s.awaitingPong, s.heartbeat = false, now
	}
	s.mu.Unlock()
}

// onTimer is the session's only timer: heartbeat, confirmation and the end of a closed session.
func (s *Session) onTimer() {
	opts, now := &s.srv.opts, s.srv.wheel.now()
	s.mu.Lock()
	if s.state != stateOpen {
		s.mu.Unlock()
		s.terminate()
		return
	}
	if !s.confirmed && now >= s.opened+opts.OpenTimeout {
		s.mu.Unlock()
		s.close(ReasonUnconfirmed, closeNormal)
		return
	}
	if s.awaitingPong && now >= s.heartbeat+opts.PingTimeout {
		s.mu.Unlock()
		s.close(ReasonPingTimeout, closeNormal)
		return
	}
	ping := !s.awaitingPong && now >= s.heartbeat+opts.PingInterval
	if ping {
		s.awaitingPong, s.heartbeat = true, now
	}
	next := s.nextTimerLocked()
	s.mu.Unlock()

	s.srv.wheel.schedule(s, next)
	if ping {
		_ = s.Send(s.srv.packets.ping)
	}
}

// nextTimerLocked says when to look again. After a ping that is no later than the interval, so that a
// timeout longer than the interval does not delay the next ping.
func (s *Session) nextTimerLocked() time.Duration {
	opts := &s.srv.opts
	next := s.heartbeat + opts.PingInterval
	if s.awaitingPong {
		next = s.heartbeat + min(opts.PingTimeout, opts.PingInterval)
		if now := s.srv.wheel.now(); next <= now { // the interval has passed, the timeout has not
			next = s.heartbeat + opts.PingTimeout
		}
	}
	if !s.confirmed {
		next = min(next, s.opened+opts.OpenTimeout)
	}
	return next
}

// Close ends the session with ReasonForced after sending what is queued.
func (s *Session) Close() { s.close(ReasonForced, closeNormal) }

// CloseMalformed ends the session with ReasonParseError: the layer above could not decode a message.
func (s *Session) CloseMalformed() { s.close(ReasonParseError, closeNormal) }

// CloseSlow ends the session with ReasonSlow: the layer above keeps more for it than it may.
func (s *Session) CloseSlow() { s.close(ReasonSlow, closeNormal) }

// close is the only way out of stateOpen. A polite close sends what is queued and a last word first.
func (s *Session) close(reason Reason, code closeCode) {
	s.mu.Lock()
	if s.state != stateOpen {
		s.mu.Unlock()
		return
	}
	s.state = stateClosing
	ws, probe, transport := s.ws, s.probe, s.transportLocked()
	var last *Message // to be written by us
	if ws != nil && !reason.abrupt() {
		last = s.lastWordLocked(closeFrame(code))
	}
	s.wakeLocked()
	s.mu.Unlock()

	if probe != nil {
		probe.conn.Close()
	}
	s.srv.sessionClosed(transport, reason)
	s.handler.OnClose(reason)
	if reason.abrupt() {
		s.terminate()
		return
	}
	// The last poll, or a slow socket, may take this long.
	s.srv.wheel.schedule(s, s.srv.wheel.now()+s.srv.opts.PingTimeout)
	if last != nil {
		s.writeDirect(ws, last)
	}
}

// lastWordLocked returns m if the caller got the write turn and has to write it; else m is queued.
func (s *Session) lastWordLocked(m *Message) *Message {
	s.queued += m.Size()
	if s.writing {
		s.queue = append(s.queue, m)
		return nil
	}
	s.writing = true
	return m
}

// terminate frees what a closing session still holds.
func (s *Session) terminate() {
	s.mu.Lock()
	if s.state == stateClosed {
		s.mu.Unlock()
		return
	}
	s.state = stateClosed
	s.queue, s.queued = nil, 0
	ws := s.ws
	s.wakeLocked()
	s.mu.Unlock()
	s.srv.forget(s)
	if ws != nil {
		ws.conn.Close()
		ws.unwatch()
	}
}

// readerEnded is called by the reader of c when it stops.
func (s *Session) readerEnded(c *wsConn, err error) {
	if c.probing {
		s.probeEnded()
		return
	}
	reason, code := ending(err)
	s.close(reason, code)
	if !reason.abrupt() {
		c.drain()
	}
	s.terminate()
}

// endIdlePolling terminates a closed session that has no request to answer: with the server gone, no
// other would come.
func (s *Session) endIdlePolling() {
	s.mu.Lock()
	idle := s.ws == nil && s.poll == nil
	s.mu.Unlock()
	if idle {
		s.terminate()
	}
}
