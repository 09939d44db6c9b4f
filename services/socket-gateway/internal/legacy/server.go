package legacy

// In the child: the library's server, its handlers, and who may join.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	googollee "github.com/googollee/go-socket.io"
	"github.com/googollee/go-socket.io/engineio"

	"github.com/parley-chat/parley/pkg/socketio"
)

const (
	namespace = "/message"

	joinTimeout = 3 * time.Second
	// joinWithin is the time that a connection has to join the namespace.
	joinWithin = 10 * time.Second
	// keepRefused is how long a refused client stays connected: it would reconnect immediately.
	keepRefused = 10 * time.Second
	// maxLeaked is the number of leaked sessions at which the process exits to be restarted.
	maxLeaked = 20_000
)

var errRefused = errors.New("refused")

// server is the library's server with the rooms of a hub.
type server struct {
	library *googollee.Server
	hub     *hub
	counts  counts
	log     *slog.Logger

	ctx  context.Context // ends with close
	stop context.CancelFunc

	mu      sync.Mutex
	waiting map[string]*time.Timer // by session id: connections that have not joined
	joining map[string]bool        // by session id: joins in progress; true: the client has left meanwhile
	running sync.WaitGroup
}

// sessionIDs generates unguessable session ids with the gateway's prefix; the library's default is a counter.
type sessionIDs struct{ prefix string }

// NewID implements session.IDGenerator.
func (s sessionIDs) NewID() string { return s.prefix + rand.Text() }

// newServer returns a server that serves no requests yet.
func newServer(setup Setup, adapter func(socketio.Local) socketio.Adapter, log *slog.Logger) *server {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{
		hub:     newHub(adapter, setup.MaxSockets),
		log:     log,
		ctx:     ctx,
		stop:    stop,
		waiting: make(map[string]*time.Timer),
		joining: make(map[string]bool),
	}
	s.library = googollee.NewServer(&engineio.Options{
		PingInterval:       setup.PingInterval,
		PingTimeout:        setup.PingInterval + setup.PingTimeout, // counted from the client's last ping
		Transports:         newTransports(&s.counts),
		SessionIDGenerator: sessionIDs{setup.SessionPrefix},
	})
	s.library.OnConnect("/", s.opened)
	s.library.OnDisconnect("/", func(c googollee.Conn, _ string) { s.stopJoinTimer(c.ID()) })
	s.library.OnConnect(namespace, s.connect)
	s.library.OnDisconnect(namespace, func(c googollee.Conn, _ string) { s.left(c.ID()) })
	s.running.Go(func() { _ = s.library.Serve() }) // ends with the library's Close
	return s
}

// opened is called for each connection. It closes the connection if it does not join within joinWithin.
func (s *server) opened(c googollee.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[c.ID()] = time.AfterFunc(joinWithin, func() { s.stopJoinTimer(c.ID()); _ = c.Close() })
	return nil
}

// stopJoinTimer stops the join timer of a connection, which has joined or ended.
func (s *server) stopJoinTimer(sid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if timer := s.waiting[sid]; timer != nil {
		timer.Stop()
		delete(s.waiting, sid)
	}
}

// connect is called when a client connects to the namespace. The library answers the client if connect returns nil.
func (s *server) connect(c googollee.Conn) error {
	conn, ok := c.(connection)
	if !ok {
		return errRefused // never: the library's connections are sessions
	}
	if s.hub.joined(c.ID()) {
		return nil
	}
	s.stopJoinTimer(c.ID())
	v := visitorOf(c.RemoteHeader())
	if v.Refusal != nil {
		return s.refuse(conn, v.Refusal)
	}
	ctx, cancel := context.WithTimeout(s.ctx, joinTimeout)
	defer cancel()
	socket := newSocket(conn, v.Room)
	switch err := s.join(ctx, socket); {
	case errors.Is(err, errTooMany):
		return s.refuse(conn, refuseTooMany)
	case err != nil:
		s.log.Warn("old client refused", "error", err)
		return s.refuse(conn, refuseUnavailable)
	}
	s.running.Go(func() { s.serve(socket, v.ExpiresAt) })
	return nil
}

// join joins a socket to its room, unless the client leaves meanwhile: the library reports that only once,
// possibly before the join.
func (s *server) join(ctx context.Context, socket *socket) error {
	sid := socket.conn.ID()
	s.mu.Lock()
	s.joining[sid] = false
	s.mu.Unlock()
	err := s.hub.join(ctx, socket)
	s.mu.Lock()
	left := s.joining[sid]
	delete(s.joining, sid)
	s.mu.Unlock()
	if left {
		s.hub.leave(sid)
	}
	return err
}

// left is called when a client has left the namespace, possibly before its join has finished.
func (s *server) left(sid string) {
	s.mu.Lock()
	if _, joining := s.joining[sid]; joining {
		s.joining[sid] = true
	}
	s.mu.Unlock()
	s.hub.leave(sid)
}

// serve writes to a socket until it ends or its token expires.
func (s *server) serve(socket *socket, expires time.Time) {
	timer := time.AfterFunc(time.Until(expires), socket.disconnect)
	defer timer.Stop()
	socket.run()
}

// refuse sends a client the reason and closes its connection after keepRefused: it would reconnect immediately.
func (s *server) refuse(conn connection, why *refusal) error {
	data, _ := json.Marshal(why) // cannot fail
	if err := write(conn, append([]byte(packetError), data...)); err != nil {
		return err
	}
	timer := time.AfterFunc(keepRefused, func() { _ = conn.Close() })
	defer timer.Stop()
	defer context.AfterFunc(s.ctx, func() { _ = conn.Close() })()
	for {
		_, r, err := conn.NextReader() // answers pings
		if err != nil {
			return errRefused
		}
		if err := r.Close(); err != nil {
			return errRefused
		}
	}
}

// ServeHTTP serves the requests forwarded by the gateway, and the gateway's revocations.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == revokePath {
		s.hub.disconnect(r.URL.Query().Get("chatUserId"))
		return
	}
	s.library.ServeHTTP(w, r)
}

// full reports whether the library has leaked so many sessions that the process should be restarted.
func (s *server) full() bool { return s.counts.leaked.Load() >= maxLeaked }

// drain closes the sockets evenly over the duration within, so that their clients do not all reconnect at once.
func (s *server) drain(within time.Duration) {
	sockets := s.hub.all()
	for _, socket := range sockets {
		go func() { _ = socket.conn.Close() }()
		time.Sleep(within / time.Duration(len(sockets)))
	}
}

// close ends all connections.
func (s *server) close() {
	s.stop()
	s.drain(0)
	_ = s.library.Close()
	if err := s.hub.adapter.Close(); err != nil {
		s.log.Warn("closing the adapter", "error", err)
	}
}
