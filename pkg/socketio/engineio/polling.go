package engineio

// HTTP long-polling: one GET waits for the queue of a session, one POST brings packets. server.go calls both
// with the session of the sid.

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// servePoll answers a GET request with the queued messages, or waits for the next message (protocol, "Receiving
// data").
func (s *Session) servePoll(w http.ResponseWriter, r *http.Request) {
	wake, upgrading, refusal := s.beginPoll()
	if refusal == nil && upgrading && s.awaitUpgrade(r, wake) {
		refusal = refuseUnknownSID
	}
	if refusal != nil {
		s.srv.refuse(w, refusal)
		return
	}
	buf := s.srv.pools.batches.Get().(*[]byte)
	defer s.srv.pools.batches.Put(buf)
	for {
		payload, last := s.takePayload((*buf)[:0])
		if last {
			s.terminate()
		}
		if len(payload) > 0 {
			writeText(w, "text/plain; charset=UTF-8", payload)
			return
		}
		select {
		case <-wake:
		case <-r.Context().Done():
			s.abandonPoll()
			return
		}
	}
}

// beginPoll registers the waiting GET request. A second one is an error and closes the session. upgrading is
// true if the probe was answered already.
func (s *Session) beginPoll() (wake <-chan struct{}, upgrading bool, refusal *refusal) {
	s.mu.Lock()
	switch {
	case s.silentLocked():
		s.mu.Unlock()
		s.close(ReasonPingTimeout, closeNormal)
		return nil, false, refuseUnknownSID
	case s.ws != nil || s.state != stateOpen && !s.lastPoll:
		s.mu.Unlock()
		return nil, false, refuseUnknownSID
	case s.poll != nil:
		s.mu.Unlock()
		s.close(ReasonTransportError, closeNormal)
		return nil, false, refuseBadRequest
	}
	poll := make(chan struct{}, 1)
	s.poll = poll
	upgrading = s.upgrading
	s.mu.Unlock()
	return poll, upgrading, nil
}

// A poll that arrives after the probe was answered is held for upgradeHold, in steps: on a delayed process,
// the steps give other goroutines time to run.
const (
	upgradeHold  = 100 * time.Millisecond
	upgradeSteps = 5
)

// awaitUpgrade holds a poll that arrived during an upgrade. A client sends its upgrade packet only when it
// has no pending poll, so if the packet arrives now, the poll was sent after it, in whatever order the
// connections delivered them: awaitUpgrade returns true, and the poll is answered with an error.
func (s *Session) awaitUpgrade(r *http.Request, wake <-chan struct{}) (upgraded bool) {
	step := time.NewTicker(upgradeHold / upgradeSteps)
	defer step.Stop()
	for n := 0; n < upgradeSteps; {
		select {
		case <-wake:
		case <-step.C:
			n++
		case <-r.Context().Done():
			s.abandonPoll()
			return true
		}
		s.mu.Lock()
		upgraded, over := s.ws != nil, !s.upgrading || s.state != stateOpen
		if upgraded {
			s.poll = nil
		}
		s.mu.Unlock()
		if upgraded || over {
			return upgraded
		}
	}
	return false
}

// wakeLocked wakes the waiting poll.
func (s *Session) wakeLocked() {
	select {
	case s.poll <- struct{}{}: // never ready without a poll
	default:
	}
}

// takePayload moves the queue into buf, or the packet that ends the session once nothing is queued; last is true if
// the session ends with this payload. The payload is empty if there is nothing to send.
//
// The two never share a payload: the official client passes the messages of a payload on a tick later, after it has
// handled the end. It would keep them until it is connected again, and get them a second time then.
func (s *Session) takePayload(buf []byte) (payload []byte, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := s.state != stateOpen
	switch {
	case s.ws != nil:
		buf = AppendPayloadPacket(buf, Packet{Type: Noop}) // the queue belongs to the WebSocket now
	case len(s.queue) > 0:
		for _, m := range s.queue {
			buf = m.appendPayload(buf)
		}
		s.queue = nil
		s.queued = 0
		last = ended && !s.lastPoll // nothing would answer another poll
	case ended:
		buf = AppendPayloadPacket(buf, Packet{Type: s.lastPacketLocked()})
		last = true
	case s.upgrading:
		buf = AppendPayloadPacket(buf, Packet{Type: Noop})
	}
	if len(buf) > 0 {
		s.poll = nil
	}
	return buf, last
}

// lastPacketLocked returns the packet for the last poll: close, or noop if the client itself sent a close packet.
func (s *Session) lastPacketLocked() PacketType {
	if s.left {
		return Noop
	}
	return Close
}

// abandonPoll closes the session when the client has cancelled its poll: messages may be
// lost, so the session cannot continue.
func (s *Session) abandonPoll() {
	s.mu.Lock()
	s.poll = nil
	upgraded := s.ws != nil
	s.mu.Unlock()
	if !upgraded {
		s.close(ReasonTransportClose, closeNormal)
	}
}

// servePost handles the packets of a POST request (protocol, "Sending data").
func (s *Session) servePost(w http.ResponseWriter, r *http.Request) {
	refusal := s.beginPost()
	if refusal != nil {
		s.srv.refuse(w, refusal)
		return
	}
	err := s.readPost(w, r)
	s.mu.Lock()
	s.posting = false
	s.mu.Unlock()
	switch {
	case err == nil:
		writeText(w, "text/html", []byte("ok"))
	case errors.Is(err, errPeerLeft):
		s.leave()
		writeText(w, "text/html", []byte("ok"))
	case errors.Is(err, errTooBig):
		s.close(ending(err))
		s.srv.refuse(w, refuseTooBig)
	default:
		s.close(ending(err))
		s.srv.refuse(w, refuseBadRequest)
	}
}

// beginPost registers the running POST request. A second one is an error and closes the session.
func (s *Session) beginPost() *refusal {
	s.mu.Lock()
	switch {
	case s.silentLocked():
		s.mu.Unlock()
		s.close(ReasonPingTimeout, closeNormal)
		return refuseUnknownSID
	case s.ws != nil || s.state != stateOpen:
		s.mu.Unlock()
		return refuseUnknownSID
	case s.posting:
		s.mu.Unlock()
		s.close(ReasonTransportError, closeNormal)
		return refuseBadRequest
	}
	s.posting = true
	s.mu.Unlock()
	return nil
}

// readPost reads the body and handles its packets.
func (s *Session) readPost(w http.ResponseWriter, r *http.Request) error {
	opts := &s.srv.opts
	if r.ContentLength > int64(opts.MaxPayload) {
		return errTooBig
	}
	deadline := http.NewResponseController(w)
	// if not supported, the HTTP server's own timeouts apply
	_ = deadline.SetReadDeadline(time.Now().Add(opts.PartialTimeout))
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(opts.MaxPayload)+1))
	_ = deadline.SetReadDeadline(time.Time{})
	if err != nil {
		return err
	}
	if len(body) > opts.MaxPayload {
		return errTooBig
	}
	if !s.packets.add(s.srv.wheel.now(), 1+bytes.Count(body, []byte{separator}), opts.MaxFrames) {
		return errTooMany
	}
	return EachPacket(body, s.onPacket)
}

// add counts n packets and reports whether the client is within limit per second; negative: no limit.
func (c *packetCount) add(now time.Duration, n, limit int) bool {
	if now-c.second >= time.Second {
		*c = packetCount{second: now}
	}
	c.n += n
	return limit < 0 || c.n <= limit
}

// leave closes the session after the client's close packet.
func (s *Session) leave() {
	s.mu.Lock()
	s.left = true
	s.mu.Unlock()
	s.close(ReasonTransportClose, closeNormal)
}

// writeText writes a response. Its error is ignored: the session notices a client that has left.
func writeText(w http.ResponseWriter, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // the heartbeat notices a client that has disconnected
}
