package engineio

// How a session's messages reach its WebSocket. At most one goroutine writes at a time: it has the write turn
// (Session.writing). send takes a free turn and writes at once (writeDirect); while another goroutine has it, send
// only queues. What the socket does not take at once, and what was queued meanwhile, is written by writeRest, which
// may block; its end, or endTurn, gives the turn back. polling.go takes the queue while the transport is polling.

import (
	"slices"
	"time"
)

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
	timeout := s.srv.opts.WriteTimeout
	end := time.Now().Add(timeout)
	for {
		s.mu.Lock()
		batch, size := s.batchLocked(ws, (*buf)[:0], rest)
		if len(batch) == 0 || s.state == stateClosed {
			s.turnEndedLocked(ws)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		deadline := time.Now().Add(timeout)
		if end.Before(deadline) {
			deadline = end
		}
		if err := ws.writeAll(batch, deadline); err != nil {
			s.close(writeFailure(err), closeNormal)
			s.terminate()
			return
		}
		end = end.Add(timeout * time.Duration(len(batch)) / writeBatchSize)
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
			buf = wire // alone, and not copied
			i++
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
