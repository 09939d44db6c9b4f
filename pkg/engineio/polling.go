package engineio

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// servePoll answers a GET request: with what is queued, or with what comes first (protocol, "Receiving
// data").
func (s *Session) servePoll(w http.ResponseWriter, r *http.Request) {
	wake, refusal := s.beginPoll()
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

// beginPoll registers the one waiting GET request. A second one is an error and ends the session.
func (s *Session) beginPoll() (<-chan struct{}, *refusal) {
	s.mu.Lock()
	switch {
	case s.ws != nil:
		s.mu.Unlock()
		return nil, refuseBadRequest
	case s.state == stateClosed:
		s.mu.Unlock()
		return nil, refuseUnknownSID
	case s.poll != nil:
		s.mu.Unlock()
		s.close(ReasonTransportError, closeNormal)
		return nil, refuseBadRequest
	}
	wake := make(chan struct{}, 1)
	s.poll = wake
	s.mu.Unlock()
	return wake, nil
}

// wakeLocked tells the waiting poll to look again.
func (s *Session) wakeLocked() {
	select {
	case s.poll <- struct{}{}: // never ready if there is no poll
	default:
	}
}

// takePayload moves the queue into buf; last says that the session ends with this payload. An empty
// result means that there is nothing to tell yet.
func (s *Session) takePayload(buf []byte) (payload []byte, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ws != nil:
		buf = AppendPayloadPacket(buf, Packet{Type: Noop}) // the queue belongs to the WebSocket now
	default:
		for _, m := range s.queue {
			buf = m.appendPayload(buf)
		}
		s.queue, s.queued = nil, 0
		if last = s.state != stateOpen; last {
			buf = AppendPayloadPacket(buf, Packet{Type: s.farewellLocked()})
		} else if len(buf) == 0 && s.upgrading {
			buf = AppendPayloadPacket(buf, Packet{Type: Noop})
		}
	}
	if len(buf) > 0 {
		s.poll = nil
	}
	return buf, last
}

// farewellLocked is what ends the last poll: a client that has said it leaves gets a mere noop.
func (s *Session) farewellLocked() PacketType {
	if s.left {
		return Noop
	}
	return Close
}

// abandonPoll is called when the client has cancelled its request: what it might have missed is
// unknown, so the session cannot go on.
func (s *Session) abandonPoll() {
	s.mu.Lock()
	s.poll = nil
	upgraded := s.ws != nil
	s.mu.Unlock()
	if !upgraded {
		s.close(ReasonTransportClose, closeNormal)
	}
}

// servePost takes the packets of a POST request (protocol, "Sending data").
func (s *Session) servePost(w http.ResponseWriter, r *http.Request) {
	if refusal := s.beginPost(); refusal != nil {
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
		http.Error(w, http.StatusText(http.StatusRequestEntityTooLarge), http.StatusRequestEntityTooLarge)
	default:
		s.close(ending(err))
		s.srv.refuse(w, refuseBadRequest)
	}
}

// beginPost registers the one running POST request. A second one is an error and ends the session.
func (s *Session) beginPost() *refusal {
	s.mu.Lock()
	switch {
	case s.ws != nil:
		s.mu.Unlock()
		return refuseBadRequest
	case s.state != stateOpen:
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

// readPost reads the body within the time in which the client must show a life sign anyway.
func (s *Session) readPost(w http.ResponseWriter, r *http.Request) error {
	opts := &s.srv.opts
	if r.ContentLength > int64(opts.MaxPayload) {
		return errTooBig
	}
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(opts.PingTimeout)) // not every writer can; then the server's own limits hold
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(opts.MaxPayload)+1))
	_ = deadline.SetReadDeadline(time.Time{})
	if err != nil {
		return err
	}
	if len(body) > opts.MaxPayload {
		return errTooBig
	}
	return EachPacket(body, s.onPacket)
}

// leave closes the session because its client said so.
func (s *Session) leave() {
	s.mu.Lock()
	s.left = true
	s.mu.Unlock()
	s.close(ReasonTransportClose, closeNormal)
}

func writeText(w http.ResponseWriter, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // a client that is gone is noticed by the heartbeat
}
