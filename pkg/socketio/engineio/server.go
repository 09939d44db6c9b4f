package engineio

// The entry of all requests: ServeHTTP checks the query and hands the request to open.go, polling.go or
// upgrade.go.
// The server knows the sessions by sid and ends them at a shutdown.

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	protocolVersion    = "4"
	transportPolling   = "polling"
	transportWebSocket = "websocket"
)

// Server is an Engine.IO server: an http.Handler for any path. Its methods are safe for
// concurrent use.
type Server struct {
	opts    Options
	open    OpenFunc
	wheel   *wheel
	pools   *pools
	packets struct{ ping, probe *Message }

	mu       sync.RWMutex
	closed   bool
	sessions map[string]*Session   // by sid
	ending   map[*Session]struct{} // removed from sessions; their last bytes may not be sent yet

	unconfirmed unconfirmed
	confirmed   atomic.Int64

	wg        sync.WaitGroup // requests, connections, writers
	poller    *poller        // nil: not supported
	own       sync.WaitGroup // goroutines of the wheel and the poller
	stopWheel chan struct{}
	webs      atomic.Int64 // sessions on WebSocket
}

// NewServer returns a running server, which must be closed. open is called for each new session.
func NewServer(opts Options, open OpenFunc) *Server {
	opts = opts.withDefaults()
	srv := &Server{
		opts:      opts,
		open:      open,
		wheel:     newWheel(wheelTick(opts)),
		pools:     newPools(),
		sessions:  make(map[string]*Session),
		ending:    make(map[*Session]struct{}),
		stopWheel: make(chan struct{}),
	}
	srv.unconfirmed.init(opts)
	srv.packets.ping = newControl(Ping, "")
	srv.packets.probe = newControl(Pong, probeData)
	srv.own.Go(func() { srv.wheel.run(srv.stopWheel) })
	srv.startPoller()
	return srv
}

// wheelTick returns a tick that is fine enough for the shortest timeout of opts and coarse enough to be cheap.
func wheelTick(opts Options) time.Duration {
	shortest := min(opts.PingInterval, opts.PingTimeout, opts.OpenTimeout)
	return min(max(shortest/50, time.Millisecond), 100*time.Millisecond)
}

// SessionCount returns the number of sessions that are open or still hold a connection, and the number of
// open sessions on WebSocket.
func (srv *Server) SessionCount() (total, webSocket int) {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return len(srv.sessions) + len(srv.ending), int(srv.webs.Load())
}

// ConfirmedCount returns the number of open sessions that the layer above has confirmed.
func (srv *Server) ConfirmedCount() int { return int(srv.confirmed.Load()) }

// Sessions returns the open sessions.
func (srv *Server) Sessions() []*Session {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	all := make([]*Session, 0, len(srv.sessions))
	for _, s := range srv.sessions {
		all = append(all, s)
	}
	return all
}

// ServeHTTP serves one request of the Engine.IO protocol.
func (srv *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !srv.begin() {
		srv.refuse(w, &refusal{
			status:  http.StatusServiceUnavailable,
			Code:    refuseForbidden.Code,
			Message: "Server is shutting down",
		})
		return
	}
	defer srv.wg.Done()
	if !srv.allowOrigin(w, r) {
		srv.refuse(w, refuseForbidden)
		return
	}
	if r.Method == http.MethodOptions {
		preflight(w, r)
		return
	}
	query := r.URL.Query()
	refusal := checkQuery(query)
	if refusal != nil {
		srv.refuse(w, refusal)
		return
	}
	if sid := query.Get("sid"); sid != "" {
		srv.serveSession(w, r, sid, query.Get("transport"))
		return
	}
	srv.handshake(w, r, query.Get("transport"))
}

// begin adds a request to wg, or returns false if the server is closed.
func (srv *Server) begin() bool {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	if srv.closed {
		return false
	}
	srv.wg.Add(1)
	return true
}

// checkQuery validates the mandatory parameters (protocol, "Query parameters").
func checkQuery(q url.Values) *refusal {
	transport := q.Get("transport")
	if transport != transportPolling && transport != transportWebSocket {
		return refuseTransport
	}
	if q.Get("EIO") != protocolVersion {
		return refuseProtocol
	}
	return nil
}

// session returns the session of a sid, or nil.
func (srv *Server) session(sid string) *Session {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return srv.sessions[sid]
}

// serveSession serves a request with a sid.
func (srv *Server) serveSession(w http.ResponseWriter, r *http.Request, sid, transport string) {
	s := srv.session(sid)
	switch {
	case s == nil:
		if !srv.opts.Forward(w, r, sid) {
			srv.refuse(w, refuseUnknownSID)
		}
	case transport == transportWebSocket:
		srv.serveUpgrade(w, r, s)
	case r.Method == http.MethodGet:
		s.servePoll(w, r)
	case r.Method == http.MethodPost:
		s.servePost(w, r)
	default:
		srv.refuse(w, refuseMethod)
	}
}

// sessionUpgraded tells the observer that a session has moved to a WebSocket.
func (srv *Server) sessionUpgraded() {
	srv.webs.Add(1)
	srv.opts.Observer.Upgraded()
}

func (srv *Server) sessionClosed(transport string, reason Reason) {
	if transport == transportWebSocket {
		srv.webs.Add(-1)
	}
	srv.opts.Observer.Closed(transport, reason)
}

// takePlace counts a confirmed session, or returns false if MaxConfirmed is reached.
func (srv *Server) takePlace() bool {
	limit := int64(srv.opts.MaxConfirmed)
	n := srv.confirmed.Add(1)
	if limit > 0 && n > limit {
		srv.confirmed.Add(-1)
		return false
	}
	return true
}

// retire makes the sid of a session unknown. The session is kept in ending until forget, for Shutdown.
func (srv *Server) retire(s *Session) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.sessions[s.id] == s {
		delete(srv.sessions, s.id)
		srv.ending[s] = struct{}{}
	}
}

// forget removes a session that has ended.
func (srv *Server) forget(s *Session) {
	srv.wheel.remove(s)
	srv.mu.Lock()
	defer srv.mu.Unlock()
	delete(srv.ending, s)
	if srv.sessions[s.id] == s {
		delete(srv.sessions, s.id)
	}
}

// remaining returns all sessions that have not ended, including retired ones.
func (srv *Server) remaining() []*Session {
	all := srv.Sessions()
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return slices.AppendSeq(all, maps.Keys(srv.ending))
}

// startPoller starts the poller for idle WebSockets. If that fails, each WebSocket has a goroutine.
func (srv *Server) startPoller() {
	p, err := newPoller()
	if err != nil {
		srv.opts.Logger.Warn("no poller, using a goroutine per connection", "error", err)
		return
	}
	if p != nil {
		srv.poller = p
		srv.own.Go(p.run)
	}
}

// Shutdown closes all sessions with ReasonShutdown, sends their queues, and returns when
// all goroutines of the server have stopped. When ctx ends it cuts the remaining connections and
// returns ctx's error, also after all goroutines have stopped.
func (srv *Server) Shutdown(ctx context.Context) error {
	first := srv.markClosed()
	for _, s := range srv.Sessions() {
		s.close(ReasonShutdown, closeGoingAway)
		s.endIdlePolling()
	}
	done := make(chan struct{})
	go func() {
		srv.wg.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		for _, s := range srv.remaining() {
			s.terminate()
		}
		<-done
	}
	if first {
		close(srv.stopWheel)
		if srv.poller != nil {
			srv.poller.stop()
		}
	}
	srv.own.Wait()
	return err
}

// Close is Shutdown with a timeout of twice closeGrace.
func (srv *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*closeGrace)
	defer cancel()
	return srv.Shutdown(ctx)
}

// markClosed refuses new sessions from now on. It reports whether this was the first call.
func (srv *Server) markClosed() (first bool) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	first = !srv.closed
	srv.closed = true
	return first
}
