package legacy

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
	// joinWithin is how long a client may be connected without being in the namespace.
	joinWithin = 10 * time.Second
	// A refused client stays connected for a while: it would reconnect at once.
	keepRefused = 10 * time.Second
	// maxLeaked sessions that the library never forgets are put up with; then the process begins anew.
	maxLeaked = 20_000
)

var errRefused = errors.New("refused")

// server is the library's server with our rooms.
type server struct {
	library *googollee.Server
	hub     *hub
	counts  counts
	log     *slog.Logger

	ctx  context.Context // ends with close
	stop context.CancelFunc

	mu      sync.Mutex
	waiting map[string]*time.Timer // by session id: who is connected and has not joined
	joining map[string]bool        // by session id: who is being put into a room, and whether it has left meanwhile
	running sync.WaitGroup
}

// sessionIDs makes session ids that name the gateway and cannot be guessed; the library would count.
type sessionIDs struct{ prefix string }

// NewID implements session.IDGenerator.
func (g sessionIDs) NewID() string { return g.prefix + rand.Text() }

func newServer(setup Setup, adapter func(socketio.Local) socketio.Adapter, log *slog.Logger) *server {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{hub: newHub(adapter, setup.MaxSockets), log: log, ctx: ctx, stop: stop, waiting: make(map[string]*time.Timer), joining: make(map[string]bool)}
	s.library = googollee.NewServer(&engineio.Options{
		PingInterval:       setup.PingInterval,
		PingTimeout:        setup.PingInterval + setup.PingTimeout, // counted from the last ping, which clients send
		Transports:         newTransports(&s.counts),
		SessionIDGenerator: sessionIDs{setup.SessionPrefix},
	})
	s.library.OnConnect("/", s.opened)
	s.library.OnDisconnect("/", func(c googollee.Conn, _ string) { s.joined(c.ID()) })
	s.library.OnConnect(namespace, s.connect)
	s.library.OnDisconnect(namespace, func(c googollee.Conn, _ string) { s.left(c.ID()) })
	s.running.Go(func() { _ = s.library.Serve() }) // ends with the library's Close
	return s
}

// opened is called for each connection. It is closed if it does not join.
func (s *server) opened(c googollee.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[c.ID()] = time.AfterFunc(joinWithin, func() { s.joined(c.ID()); _ = c.Close() })
	return nil
}

// joined is called when a connection need not be waited for any more.
func (s *server) joined(sid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if timer := s.waiting[sid]; timer != nil {
		timer.Stop()
		delete(s.waiting, sid)
	}
}

// connect is called when a client connects to the namespace. The client gets its answer when it returns nil.
func (s *server) connect(c googollee.Conn) error {
	conn, ok := c.(connection)
	if !ok {
		return errRefused // never: the library's connections are sessions
	}
	if s.hub.joined(c.ID()) {
		return nil
	}
	s.joined(c.ID())
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

// join puts a socket into its room, unless its client leaves meanwhile: the library tells so only once, and maybe too early.
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

// left is called when a client has left the namespace, in which it may not have been yet.
func (s *server) left(sid string) {
	s.mu.Lock()
	if _, joining := s.joining[sid]; joining {
		s.joining[sid] = true
	}
	s.mu.Unlock()
	s.hub.leave(sid)
}

// serve writes to a socket until it ends, at the latest with its token.
func (s *server) serve(socket *socket, expires time.Time) {
	timer := time.AfterFunc(time.Until(expires), socket.disconnect)
	defer timer.Stop()
	socket.run()
}

// refuse sends a client the reason, and closes its connection later: it would reconnect at once.
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

// ServeHTTP serves what the gateway passes on, and what it says itself.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == revokePath {
		s.hub.disconnect(r.URL.Query().Get("chatUserId"))
		return
	}
	s.library.ServeHTTP(w, r)
}

// full reports whether the library has leaked so many sessions that a new process should replace this one.
func (s *server) full() bool { return s.counts.leaked.Load() >= maxLeaked }

// drain closes the sockets, spread evenly over a time, so that their clients do not reconnect to other gateways all at once.
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
