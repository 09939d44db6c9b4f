package engineio

// The session: state, heartbeat, queue and the one way to close. It belongs to no transport: polling.go and
// websocket.go take from its queue, and give it what they have received.

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

// closeGrace is the time that a client has to close its side of a closed WebSocket.
const closeGrace = 2 * time.Second

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
	writing      bool // a goroutine is writing to ws
	awaitingPong bool
	left         bool    // the client has sent a close packet
	lastPoll     bool    // closed by the server: the next poll gets the queue and the close packet
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

// partial is a kind of incomplete input.
type partial int

const (
	restOfMessage partial = iota // of the WebSocket
	restOfPacket                 // of the layer above
)

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

// AwaitRest tells whether the layer above waits for the rest of a packet. The session is closed if
// the rest takes longer than Options.PartialTimeout.
func (s *Session) AwaitRest(awaited bool) { s.await(restOfPacket, awaited) }

// await starts or stops the timeout for the rest of an incomplete input.
func (s *Session) await(what partial, awaited bool) {
	s.mu.Lock()
	s.awaited[what] = 0
	if awaited {
		s.awaited[what] = max(s.srv.wheel.now(), 1)
	}
	open := s.state == stateOpen
	next := s.nextTimerLocked()
	s.mu.Unlock()
	if open && awaited {
		s.srv.wheel.schedule(s, next)
	}
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

// send writes m at once if the WebSocket is idle, and queues it otherwise.
func (s *Session) send(m *Message, volatile bool) error {
	if s.compresses.Load() && m.Size() >= s.srv.opts.CompressFrom {
		m.compress(&s.srv.pools.deflaters, s.srv.opts.CompressFrom) // without holding mu
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
	ws := s.ws
	if ws != nil && !s.writing { // no writer is active: this goroutine writes
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

// writableLocked reports whether a message would be sent at once: by an idle WebSocket, or by a waiting
// poll.
func (s *Session) writableLocked() bool {
	if s.ws != nil {
		return !s.writing
	}
	return s.poll != nil && len(s.queue) == 0
}

// enqueueLocked queues a message and wakes the transport.
func (s *Session) enqueueLocked(m *Message) {
	s.queue = append(s.queue, m)
	s.queued += m.cost()
	s.wakeLocked()
}

// sendPong answers a ping frame. It replaces a queued pong.
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

// sendRaw sends a WebSocket control frame if the session is open.
func (s *Session) sendRaw(m *Message) {
	_ = s.send(m, false)
}

// writeDirect writes m in the calling goroutine, which must hold the write turn. Bytes that the socket does not
// accept, and messages queued meanwhile, are written by a goroutine that may block.
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
	s.srv.wg.Add(1) // the reader still counts, so wg.Wait cannot have returned
	s.mu.Unlock()
	go s.writeRest(ws, wire[n:])
}

// endTurn releases the write turn, or passes it to a goroutine that writes the messages queued meanwhile.
func (s *Session) endTurn(ws *wsConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 && s.pong == nil {
		s.turnEndedLocked(ws)
		return
	}
	s.srv.wg.Add(1) // the caller counts in wg
	go s.writeRest(ws, nil)
}

// turnEndedLocked releases the write turn. If the session is closing, it finishes the connection.
func (s *Session) turnEndedLocked(ws *wsConn) {
	s.writing = false
	if s.state != stateClosing {
		return
	}
	end := s.srv.wheel.now() // closed by us: no event follows, so terminate now
	if !ws.finish() {
		end += closeGrace
	}
	s.srv.wheel.schedule(s, end)
}

// writeRest writes rest and the queue until both are empty. Each write has WriteTimeout, and all writes
// together have WriteTimeout for each full batch: this closes clients that read only a few bytes at a time.
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

// batchLocked combines rest and queued messages into one write. A large first piece is not copied. size is their
// cost against the send buffer.
func (s *Session) batchLocked(ws *wsConn, buf, rest []byte) (batch []byte, size int) {
	if len(rest) > cap(buf) {
		return rest, len(rest)
	}
	buf = append(buf, rest...)
	size = len(rest)
	m := s.pong
	if m != nil && len(buf)+len(m.wire) <= cap(buf) { // before the queue: the client waits for it
		buf = append(buf, m.wire...)
		size += m.cost()
		s.pong = nil
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
		s.queue = nil // frees the queue of an idle session
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

// isOpen reports whether the session is open.
func (s *Session) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == stateOpen
}

// onPong records that the client is alive. Usually the wheel's next visit schedules the next ping; if the
// interval has passed already, the next visit would be at the timeout, so onPong reschedules it.
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
			s.heartbeat = due // a late timer must not shorten the client's timeout
		}
	}
	next := s.nextTimerLocked()
	s.mu.Unlock()

	s.srv.wheel.schedule(s, next)
	if ping {
		_ = s.Send(s.srv.packets.ping)
	}
}

// nextTimerLocked returns the time of the next onTimer. After a ping that is at most one interval later, so that a
// timeout longer than the interval does not delay the next ping.
func (s *Session) nextTimerLocked() time.Duration {
	opts := &s.srv.opts
	next := s.heartbeat + opts.PingInterval
	if s.awaitingPong {
		next = s.heartbeat + min(opts.PingTimeout, opts.PingInterval)
		if next <= s.srv.wheel.now() { // the interval has passed, the timeout has not
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

// restOverdueLocked reports whether the rest of an incomplete input is late.
func (s *Session) restOverdueLocked(now time.Duration) bool {
	for _, since := range s.awaited {
		if since > 0 && now >= since+s.srv.opts.PartialTimeout {
			return true
		}
	}
	return false
}

// silentLocked reports whether a polling client has missed its heartbeat, even if the timer is late.
func (s *Session) silentLocked() bool {
	opts, allowed := &s.srv.opts, s.srv.opts.PingTimeout
	if !s.awaitingPong {
		allowed += opts.PingInterval
	}
	return s.state == stateOpen && s.ws == nil && s.poll == nil && s.srv.wheel.now() >= s.heartbeat+allowed
}

// Close closes the session with ReasonForced after sending the queue.
func (s *Session) Close() { s.close(ReasonForced, closeNormal) }

// CloseSlow closes the session with ReasonSlow, for a layer above with a buffer of its own that is full.
func (s *Session) CloseSlow() { s.close(ReasonSlow, closeNormal) }

// close ends stateOpen; every end of a session goes through it. Unless the reason is abrupt, it first sends
// the queue and a close packet. The sid becomes unknown before the handler and the client are notified; only
// a session closed by the server is kept for one more poll, if no poll is waiting for the close packet.
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
	if reason.abrupt() || idle {
		s.terminate()
		return
	}
	// Time limit for the last poll or a slow socket.
	s.srv.wheel.schedule(s, s.srv.wheel.now()+s.srv.opts.PingTimeout)
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
	idle := s.ws == nil && s.poll == nil
	s.mu.Unlock()
	if idle {
		s.terminate()
	}
}
