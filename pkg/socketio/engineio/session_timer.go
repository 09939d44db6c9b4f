package engineio

// The timeouts of a session, all on one timer of the wheel (wheel.go): the heartbeat, the confirmation, the rest of
// an incomplete message or packet, and the end of a closed session. onTimer is its only callback; a method
// that makes nextTimerLocked earlier schedules the session again.

import "time"

// partial is a kind of incomplete input.
type partial int

const (
	restOfMessage partial = iota // of the WebSocket
	restOfPacket                 // of the layer above
)

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

// onPong records that the client is alive. Usually the wheel's next visit schedules the next ping; if the
// interval has passed already, the next visit would be at the timeout, so onPong reschedules it.
func (s *Session) onPong() {
	now := s.srv.wheel.now()
	s.mu.Lock()
	late := s.awaitingPong && s.state == stateOpen && now-s.heartbeat >= s.srv.opts.PingInterval
	if s.awaitingPong {
		s.awaitingPong = false
		s.heartbeat = now
	}
	next := s.nextTimerLocked()
	s.mu.Unlock()
	if late {
		s.srv.wheel.schedule(s, next)
	}
}

// onTimer is the session's only timer: heartbeat, confirmation and the end of a closed session.
func (s *Session) onTimer() {
	opts := &s.srv.opts
	now := s.srv.wheel.now()
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
		s.awaitingPong = true
		s.heartbeat = now
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
	opts := &s.srv.opts
	allowed := opts.PingTimeout
	if !s.awaitingPong {
		allowed += opts.PingInterval
	}
	return s.state == stateOpen && s.ws == nil && s.poll == nil && s.srv.wheel.now() >= s.heartbeat+allowed
}
