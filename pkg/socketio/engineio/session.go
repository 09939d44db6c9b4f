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

// Handler receives what a client sends. It is called for one message at a time, in order.
type Handler interface {
	// OnMessage is called with each message; data is valid only during the call. An error closes the
	// session with ReasonParseError.
	OnMessage(data []byte, binary bool) error
	// OnClose is called once, possibly from within Send or Close. It must not wait for the client.
	OnClose(reason Reason)
}

// OpenFunc is called with each new session before its first packet and returns the session's handler.
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
	writing      bool // a goroutine is writing to ws
	awaitingPong bool
	left         bool    // the client has said that it leaves
	lastPoll     bool    // closed by the server: the next poll gets the last words
	ws           *wsConn // nil while the transport is polling
	probe        *wsConn // a WebSocket that has not upgraded yet
	poll         chan struct{}
	queue        []*Message
	pong         *Message         // the answer to the client's last ping frame: RFC 6455 §5.5.3 asks for no other
	queued       int              // cost of what was accepted and not yet handed to the kernel
	heartbeat    time.Duration    // when the last ping was sent or the last pong arrived
	opened       time.Duration    // or when Unconfirm was called
	awaited      [2]time.Duration // since when the rest of a message, and of a packet, is awaited; 0: it is not
	packets      packetCount      // touched by the one running POST request

	address string
	waiting *unconfirmedEntry // guarded by unconfirmed.mu; nil once confirmed

	timer wheelEntry
}

// partial is what a client has begun to send.
type partial int

const (
	restOfMessage partial = iota // of the WebSocket
	restOfPacket                 // of the layer above
)

// packetCount counts the packets of a polling client in the second that began at second.
type packetCount struct {
	second time.Duration
	n      int
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

// Confirm keeps the session open beyond Options.OpenTimeout. It reports false, and changes nothing, if there are
// Options.MaxConfirmed already.
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

// Unconfirm takes Confirm back: the session is closed if it is not confirmed again within Options.OpenTimeout.
func (s *Session) Unconfirm() {
	s.mu.Lock()
	if s.state != stateOpen || !s.confirmed {
		s.mu.Unlock()
		return
	}
	s.confirmed, s.opened = false, s.srv.wheel.now()
	s.srv.confirmed.Add(-1)
	next := s.nextTimerLocked()
	s.mu.Unlock()
	s.srv.wheel.schedule(s, next)
	s.srv.unconfirmed.add(s)
}

// closeUnconfirmed ends a session that has to make room, unless it was confirmed meanwhile.
func (s *Session) closeUnconfirmed() {
	if s.isUnconfirmed() {
		s.close(ReasonUnconfirmed, closeNormal)
	}
}

func (s *Session) isUnconfirmed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == stateOpen && !s.confirmed
}

// AwaitRest says whether the layer above has begun a packet whose rest is still to come. The session is closed if
// that takes longer than Options.PartialTimeout.
func (s *Session) AwaitRest(awaited bool) { s.await(restOfPacket, awaited) }

func (s *Session) await(what partial, awaited bool) {
	s.mu.Lock()
	s.awaited[what] = 0
	if awaited {
		s.awaited[what] = max(s.srv.wheel.now(), 1)
	}
	open, next := s.state == stateOpen, s.nextTimerLocked()
	s.mu.Unlock()
	if open && awaited {
		s.srv.wheel.schedule(s, next)
	}
}

// Buffered returns the number of bytes that wait for the client, with what it takes to keep them.
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
	if s.queued > 0 && s.queued+m.cost() > s.srv.opts.SendBuffer {
		s.mu.Unlock()
		s.close(ReasonSlow, closeNormal)
		return ErrSlow
	}
	if ws := s.ws; ws != nil && !s.writing {
		s.writing = true
		s.queued += m.cost()
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
	s.queued += m.cost()
	s.wakeLocked()
}

// sendPong answers a ping frame. A pong that still waits is replaced.
func (s *Session) sendPong(data []byte) {
	m := newRawFrame(opPong, data)
	s.mu.Lock()
	ws := s.ws
	if s.state != stateOpen || ws == nil {
		s.mu.Unlock()
		return
	}
	s.queued += m.cost()
	if s.writing {
		if s.pong != nil {
			s.queued -= s.pong.cost()
		}
		s.pong = m
		s.mu.Unlock()
		return
	}
	s.writing = true
	s.mu.Unlock()
	s.writeDirect(ws, m)
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
	s.queued -= m.cost() - len(wire[n:])
	if n == len(wire) && len(s.queue) == 0 && s.pong == nil {
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

// endTurn gives the write turn back, or to a goroutine that writes what was queued meanwhile.
func (s *Session) endTurn(ws *wsConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 && s.pong == nil {
		s.turnEndedLocked(ws)
		return
	}
	s.srv.wg.Add(1) // the caller is counted
	go s.writeRest(ws, nil)
}

// turnEndedLocked gives the write turn back, or ends the connection if that was the last of it.
func (s *Session) turnEndedLocked(ws *wsConn) {
	s.writing = false
	if s.state != stateClosing {
		return
	}
	end := s.srv.wheel.now() // a closed connection has no events: nothing else would notice
	if !ws.finish() {
		end += closeGrace
	}
	s.srv.wheel.schedule(s, end)
}

// writeRest writes rest and the queue until nothing is left. Each write has WriteTimeout, and all of them together as
// much for every full batch: a client that takes a few bytes now and then does not stay.
func (s *Session) writeRest(ws *wsConn, rest []byte) {
	defer s.srv.wg.Done()
	buf := s.srv.pools.batches.Get().(*[]byte)
	defer s.srv.pools.batches.Put(buf)
	patience := s.srv.opts.WriteTimeout
	end := time.Now().Add(patience)
	for {
		s.mu.Lock()
		batch, size := s.batchLocked(ws, (*buf)[:0], rest)
		if len(batch) == 0 || s.state == stateClosed {
			s.turnEndedLocked(ws)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		deadline := time.Now().Add(patience)
		if end.Before(deadline) {
			deadline = end
		}
		if err := ws.writeAll(batch, deadline); err != nil {
			s.close(writeFailure(err), closeNormal)
			s.terminate()
			return
		}
		end = end.Add(patience * time.Duration(len(batch)) / writeBatchSize)
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
	if m := s.pong; m != nil && len(buf)+len(m.wire) <= cap(buf) {
		buf, size, s.pong = append(buf, m.wire...), size+m.cost(), nil
	}
	i := 0
	for ; i < len(s.queue); i++ {
		wire := s.queue[i].wireFor(ws)
		if len(buf) > 0 && len(buf)+len(wire) > cap(buf) {
			break
		}
		size += s.queue[i].cost()
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

// onPong records that the client is alive; the wheel schedules the next ping when it reaches the session. After an interval without
// a pong it would reach it only at the timeout.
func (s *Session) onPong() {
	now := s.srv.wheel.now()
	s.mu.Lock()
	late := s.awaitingPong && s.state == stateOpen && now-s.heartbeat >= s.srv.opts.PingInterval
	if s.awaitingPong {
		s.awaitingPong, s.heartbeat = false, now
	}
	next := s.nextTimerLocked()
	s.mu.Unlock()
	if late {
		s.srv.wheel.schedule(s, next)
	}
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
	if s.restOverdueLocked(now) {
		s.mu.Unlock()
		s.close(ReasonTransportError, closePolicy)
		return
	}
	ping := !s.awaitingPong && now >= s.heartbeat+opts.PingInterval
	if ping {
		due := s.heartbeat + opts.PingInterval
		s.awaitingPong, s.heartbeat = true, now
		if s.ws == nil && s.poll == nil {
			s.heartbeat = due // the client does not lose the time by which the timer is late
		}
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
	for _, since := range s.awaited {
		if since > 0 {
			next = min(next, since+opts.PartialTimeout)
		}
	}
	return next
}

func (s *Session) restOverdueLocked(now time.Duration) bool {
	for _, since := range s.awaited {
		if since > 0 && now >= since+s.srv.opts.PartialTimeout {
			return true
		}
	}
	return false
}

// silentLocked reports whether a polling client has missed its heartbeat, even if the timer has not fired yet.
func (s *Session) silentLocked() bool {
	opts, allowed := &s.srv.opts, s.srv.opts.PingTimeout
	if !s.awaitingPong {
		allowed += opts.PingInterval
	}
	return s.state == stateOpen && s.ws == nil && s.poll == nil && s.srv.wheel.now() >= s.heartbeat+allowed
}

// Close ends the session with ReasonForced after flushing the queue.
func (s *Session) Close() { s.close(ReasonForced, closeNormal) }

// CloseSlow ends the session with ReasonSlow: the layer above keeps more for it than it may.
func (s *Session) CloseSlow() { s.close(ReasonSlow, closeNormal) }

// close is the only way out of stateOpen. A polite close sends what is queued and a last word first. From here on the
// sid is unknown, before anybody hears of the end; only what the server has closed is kept for one more poll, if
// none waits for its last words.
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
	s.lastPoll = s.ws == nil && s.poll == nil && (reason == ReasonForced || reason == ReasonShutdown)
	if !s.lastPoll {
		s.srv.retire(s)
	}
	ws, probe, transport := s.ws, s.probe, s.transportLocked()
	var last *Message // to be written by us
	if ws != nil && !reason.abrupt() {
		last = s.lastWordLocked(closeFrame(code))
	}
	idle := s.ws == nil && s.poll == nil && !s.lastPoll // nothing is left to do
	s.wakeLocked()
	s.mu.Unlock()

	s.srv.unconfirmed.remove(s)
	if probe != nil {
		probe.conn.Close()
	}
	s.srv.sessionClosed(transport, reason)
	s.handler.OnClose(reason)
	if reason.abrupt() || idle {
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
	s.queued += m.cost()
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
	s.queue, s.pong, s.queued = nil, nil, 0
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
	if !reason.abrupt() && !errors.Is(err, errTooMany) {
		c.drain()
	}
	s.terminate()
}

// endIdlePolling terminates a closed session that has no request to answer: with the server closed, no
// other would arrive.
func (s *Session) endIdlePolling() {
	s.mu.Lock()
	idle := s.ws == nil && s.poll == nil
	s.mu.Unlock()
	if idle {
		s.terminate()
	}
}
