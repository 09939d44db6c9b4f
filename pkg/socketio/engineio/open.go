package engineio

// The birth of a session: server.go calls handshake for a request without a sid, which opens a session over
// polling or a WebSocket. upgrade.go moves a session from the one to the other.

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// maxDismissed is the maximum number of bytes read from a dismissed WebSocket while its client closes it.
const maxDismissed = 64 << 10

// handshake opens a session (protocol, "Handshake").
func (srv *Server) handshake(w http.ResponseWriter, r *http.Request, transport string) {
	if r.Method != http.MethodGet {
		srv.refuse(w, refuseMethod)
		return
	}
	if srv.full() {
		srv.refuse(
			w,
			&refusal{
				status:     http.StatusServiceUnavailable,
				retryAfter: time.Second,
				Code:       refuseForbidden.Code,
				Message:    "Too many sessions",
			},
		)
		return
	}
	if err := srv.opts.Admit(r); err != nil {
		srv.refuse(w, refusalOf(err))
		return
	}
	if transport == transportWebSocket {
		srv.openWebSocket(w, r)
		return
	}
	srv.openPolling(w, r)
}

// full reports whether no more sessions are accepted.
func (srv *Server) full() bool {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return srv.opts.MaxSessions > 0 && len(srv.sessions)+len(srv.ending) >= srv.opts.MaxSessions
}

// openPolling opens a session and answers with its open packet.
func (srv *Server) openPolling(w http.ResponseWriter, r *http.Request) {
	s := srv.newSession(r)
	if !srv.add(s) {
		srv.refuse(w, refuseForbidden)
		return
	}
	packet := Packet{Type: Open, Data: srv.openData(s.id, true)}
	writeText(w, "text/plain; charset=UTF-8", AppendPacket(nil, packet))
}

// openWebSocket opens a session over a WebSocket, whose first message is the open packet.
func (srv *Server) openWebSocket(w http.ResponseWriter, r *http.Request) {
	s := srv.newSession(r)
	c, early, err := srv.acceptWebSocket(w, r, s)
	if err != nil {
		return
	}
	extensions := srv.negotiate(c, r)
	s.ws, s.writing = c, true // the handshake must be written first
	s.compresses.Store(extensions != "")
	srv.webs.Add(1)
	if !srv.add(s) { // before the client receives the sid
		srv.webs.Add(-1)
		c.conn.Close()
		return
	}
	if err := srv.completeHandshake(c, r, extensions, newControl(Open, string(srv.openData(s.id, false)))); err != nil {
		s.close(ReasonTransportClose, closeNormal)
		return
	}
	s.endTurn(c)
	srv.wg.Add(1) // counted as a request until here
	c.start(early)
}

// serveUpgrade connects a WebSocket to a polling session.
func (srv *Server) serveUpgrade(w http.ResponseWriter, r *http.Request, s *Session) {
	reserved, refusal := s.reserveProbe()
	switch {
	case refusal != nil:
		srv.refuse(w, refusal)
		return
	case !reserved:
		srv.dismiss(w, r)
		return
	}
	c, early, err := srv.acceptWebSocket(w, r, s)
	if err == nil {
		c.probing = true
		err = srv.completeHandshake(c, r, srv.negotiate(c, r), nil)
	}
	if err != nil {
		s.probeEnded()
		return
	}
	if err := c.conn.SetReadDeadline(time.Now().Add(srv.opts.UpgradeTimeout)); err != nil || !s.setProbe(c) {
		c.conn.Close()
		s.probeEnded()
		return
	}
	srv.wg.Add(1) // counted as a request until here
	c.start(early)
}

// dismiss completes the handshake of a second WebSocket of a session and closes that WebSocket. The session is not
// affected (protocol, "Upgrade").
func (srv *Server) dismiss(w http.ResponseWriter, r *http.Request) {
	conn, _, err := srv.takeOver(w, r)
	if err != nil {
		return
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(closeGrace)) != nil {
		return
	}
	answer := appendSwitching(nil, r.Header.Get("Sec-WebSocket-Key"), "")
	if _, err := conn.Write(append(answer, closeFrame(closeNormal).wire...)); err != nil {
		return
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, maxDismissed) // until the client closes as well
	}
}

// acceptWebSocket validates the request and hijacks its connection. On an error it has sent the response.
func (srv *Server) acceptWebSocket(w http.ResponseWriter, r *http.Request, s *Session) (*wsConn, []byte, error) {
	conn, early, err := srv.takeOver(w, r)
	if err != nil {
		return nil, nil, err
	}
	return newWSConn(conn, s), early, nil
}

// takeOver checks the handshake of a WebSocket and takes its connection from net/http. It has answered the request
// if it returns an error; otherwise completeHandshake does.
func (srv *Server) takeOver(w http.ResponseWriter, r *http.Request) (net.Conn, []byte, error) {
	if !isWebSocketUpgrade(r) {
		srv.refuse(w, refuseBadRequest)
		return nil, nil, errHandshake
	}
	if _, err := checkKey(r); err != nil {
		srv.refuse(w, refuseBadRequest)
		return nil, nil, err
	}
	conn, early, err := hijack(w)
	if err != nil {
		srv.opts.Logger.Error("taking over a connection", "error", err)
		srv.refuse(w, refuseBadRequest)
		return nil, nil, err
	}
	return conn, early, nil
}

// completeHandshake sends the 101 response and the message first in one write.
func (srv *Server) completeHandshake(c *wsConn, r *http.Request, extensions string, first *Message) error {
	buf := srv.pools.batches.Get().(*[]byte)
	defer srv.pools.batches.Put(buf)
	answer := appendSwitching((*buf)[:0], r.Header.Get("Sec-WebSocket-Key"), extensions)
	if first != nil {
		answer = append(answer, first.wire...)
	}
	if err := c.writeAll(answer, time.Now().Add(srv.opts.WriteTimeout)); err != nil {
		c.conn.Close()
		return err
	}
	return nil
}

// negotiate negotiates compression and returns the extension header of the response.
func (srv *Server) negotiate(c *wsConn, r *http.Request) (extensions string) {
	if srv.opts.CompressFrom <= 0 {
		return ""
	}
	extensions = negotiateDeflate(r.Header.Values("Sec-WebSocket-Extensions"))
	if extensions != "" {
		c.in.deflaters = &srv.pools.deflaters
	}
	return extensions
}

// newSession returns a session with an id of its own, which no request can find yet.
func (srv *Server) newSession(r *http.Request) *Session {
	now := srv.wheel.now()
	return &Session{
		srv:       srv,
		id:        srv.opts.NewSessionID(),
		request:   newRequest(r, &srv.opts),
		address:   strings.Clone(srv.opts.Address(r)),
		opened:    now,
		heartbeat: now,
	}
}

// add registers s under its sid and starts its heartbeat. It returns false if the server is closed.
func (srv *Server) add(s *Session) bool {
	// No other goroutine knows s yet.
	transport := s.transportLocked()
	firstTimer := s.nextTimerLocked()
	s.handler = srv.open(s)
	srv.mu.Lock()
	if srv.closed {
		srv.mu.Unlock()
		s.handler.OnClose(ReasonShutdown)
		return false
	}
	srv.sessions[s.id] = s
	srv.mu.Unlock()
	srv.opts.Observer.Opened(transport)
	srv.wheel.schedule(s, firstTimer)
	srv.unconfirmed.add(s)
	return true
}

// openData is the payload of the open packet.
func (srv *Server) openData(sid string, upgrade bool) []byte {
	upgrades := []string{}
	if upgrade {
		upgrades = append(upgrades, transportWebSocket)
	}
	open := struct {
		SID          string   `json:"sid"`
		Upgrades     []string `json:"upgrades"`
		PingInterval int64    `json:"pingInterval"` // in milliseconds
		PingTimeout  int64    `json:"pingTimeout"`  // in milliseconds
		MaxPayload   int      `json:"maxPayload"`
	}{
		SID:          sid,
		Upgrades:     upgrades,
		PingInterval: srv.opts.PingInterval.Milliseconds(),
		PingTimeout:  srv.opts.PingTimeout.Milliseconds(),
		MaxPayload:   srv.opts.MaxPayload,
	}
	data, _ := json.Marshal(open) // cannot fail
	return data
}
