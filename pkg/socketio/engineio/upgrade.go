package engineio

// The upgrade of a session from polling to a WebSocket (protocol, "Upgrade"): probe, answer, upgrade packet.
// Until the last, the queue belongs to polling; from then on to the WebSocket.

import (
	"errors"
	"time"
)

// probeData is the payload of the ping and pong that probe a new transport.
const probeData = "probe"

var errProbe = errors.New("engineio: malformed probe")

// reserveProbe reserves the session's only upgrade for a WebSocket. It returns false if the upgrade is taken or
// the session cannot be upgraded.
func (s *Session) reserveProbe() (reserved bool, refusal *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state != stateOpen:
		return false, refuseUnknownSID
	case s.ws != nil || s.probing:
		return false, nil
	}
	s.probing = true
	return true, nil
}

// setProbe assigns c to the reservation, or returns false if the session was closed meanwhile.
func (s *Session) setProbe(c *wsConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != stateOpen {
		return false
	}
	s.probe = c
	return true
}

// onProbe handles a packet of a WebSocket before the upgrade (protocol, "Upgrade").
func (s *Session) onProbe(c *wsConn, p Packet) error {
	switch {
	case p.Type == Ping && string(p.Data) == probeData:
		if err := s.releasePoll(); err != nil {
			return err
		}
		return c.writeAll(s.srv.packets.probe.wire, time.Now().Add(s.srv.opts.WriteTimeout))
	case p.Type == Upgrade:
		return s.upgrade(c)
	default:
		return errProbe
	}
}

// releasePoll answers the waiting poll with a noop. Until the upgrade is done, later polls get a noop after
// upgradeHold.
func (s *Session) releasePoll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != stateOpen {
		return ErrClosed
	}
	s.upgrading = true
	s.wakeLocked()
	return nil
}

// upgrade makes c the session's transport and sends the messages queued for a poll.
func (s *Session) upgrade(c *wsConn) error {
	s.mu.Lock()
	if s.state != stateOpen || !s.upgrading {
		s.mu.Unlock()
		return errProbe
	}
	// s.probing stays true: a session is upgraded at most once
	s.ws = c
	s.probe = nil
	s.upgrading = false
	c.probing = false
	s.compresses.Store(c.in.deflaters != nil)
	s.wakeLocked()
	pending := len(s.queue) > 0
	if pending {
		s.writing = true
		s.srv.wg.Add(1) // the calling reader counts in wg
	}
	s.mu.Unlock()
	if pending {
		go s.writeRest(c, nil)
	}
	s.srv.sessionUpgraded()
	return c.conn.SetReadDeadline(time.Time{})
}

// upgradeAnsweredLocked reports whether the client knows that its probe was answered and has no poll: it sends the
// upgrade packet next, and does not poll again. If its session ends now, the probe stays open for that packet: the
// official client takes the end of a probe for a failed upgrade, and would wait for its ping timeout to notice.
func (s *Session) upgradeAnsweredLocked() bool { return s.probe != nil && s.upgrading && s.poll == nil }

// probeEnded ends a failed upgrade; the session continues with polling, unless it has ended.
func (s *Session) probeEnded() {
	s.mu.Lock()
	s.probe = nil
	s.probing = false
	s.upgrading = false
	ended := s.state != stateOpen
	s.mu.Unlock()
	if ended {
		s.endIdlePolling()
	}
}
