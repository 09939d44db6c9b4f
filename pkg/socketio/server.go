package socketio

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// Options configure a Server. The zero value of each field means its default.
type Options struct {
	PingInterval   time.Duration // time between a pong and the next ping; 25 s
	PingTimeout    time.Duration // time for the client to answer a ping; 20 s
	ConnectTimeout time.Duration // time to join a namespace, middlewares included, while a client is in none; 45 s
	UpgradeTimeout time.Duration // time to move from polling to WebSocket; 10 s
	WriteTimeout   time.Duration // longest stall of a write, see engineio.Options; 10 s
	PartialTimeout time.Duration // time for the rest of an unfinished message or packet; 30 s
	JoinTimeout    time.Duration // longest that Socket.Join waits for the adapter; 5 s
	MaxPayload     int           // bytes of a client's message or POST body; 1,000,000
	MaxFrames      int           // frames or polling packets of one client in a second; 10,000; negative is no limit
	MaxAttachments int           // binary attachments of one packet; 10; negative is none
	SendBuffer     int           // bytes that may wait for one client; 1 MiB
	MaxSessions    int           // open sessions, more get 503; 0 is no limit
	KeepHeaders    []string      // header names that Handshake shows; nil keeps all
	DropQuery      bool          // Handshake shows no query
	CompressFrom   int           // bytes from which messages are compressed, see engineio.Options; 0 is never

	// MaxJoined bounds the sessions that are in a namespace. One more is closed when its middlewares have let it in, so
	// that its client connects anew, perhaps elsewhere. 0 is no limit.
	MaxJoined int
	// MaxPending bounds the sessions that are in no namespace yet, MaxPendingPerAddress those of one address. One
	// more closes the oldest of them. 0 is no limit. Address returns the address that a handshake counts for; nil
	// means the host of the network address.
	MaxPending           int
	MaxPendingPerAddress int
	Address              func(*http.Request) string

	// Path is where the server is mounted; other paths get 404. The default is "/socket.io/".
	Path string
	// Adapter connects each namespace to the other nodes of a cluster. Nil means a single node.
	Adapter func(Local) Adapter
	// LocalIDs saves a subscription per socket in a cluster: then other nodes cannot address a socket by its
	// ID as if that were a room.
	LocalIDs bool
	// CheckOrigin decides whether a page of the request's Origin may connect. Nil allows any site, and
	// never with credentials.
	CheckOrigin func(*http.Request) bool
	// Admit decides on a handshake before anything is spent on it; see engineio.AdmissionError.
	Admit func(*http.Request) error
	// NewSessionID and Forward let several nodes share one address without sticky sessions; see
	// engineio.Options.
	NewSessionID func() string
	Forward      func(w http.ResponseWriter, r *http.Request, sid string) bool

	Logger  *slog.Logger // nil logs nothing
	Metrics Metrics
}

// Metrics receives events for counters. Its functions must be fast; each may be nil.
type Metrics struct {
	SessionOpened   func(transport string)
	SessionUpgraded func()
	SessionClosed   func(transport, reason string)
	RequestRefused  func(code int) // an error code of Engine.IO

	SocketConnected    func(namespace string)
	SocketRefused      func(namespace string)
	SocketDisconnected func(namespace, reason string)

	Delivered func(namespace string, sockets int) // one broadcast, to so many sockets here
}

func (m Metrics) withDefaults() Metrics {
	if m.SocketConnected == nil {
		m.SocketConnected = func(string) {}
	}
	if m.SocketRefused == nil {
		m.SocketRefused = func(string) {}
	}
	if m.SocketDisconnected == nil {
		m.SocketDisconnected = func(string, string) {}
	}
	if m.Delivered == nil {
		m.Delivered = func(string, int) {}
	}
	return m
}

func (m Metrics) observer() engineio.Observer {
	o := engineio.Observer{Opened: m.SessionOpened, Upgraded: m.SessionUpgraded, Refused: m.RequestRefused}
	if closed := m.SessionClosed; closed != nil {
		o.Closed = func(transport string, reason engineio.Reason) { closed(transport, string(reason)) }
	}
	return o
}

func (o Options) withDefaults() Options {
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = 45 * time.Second
	}
	if o.JoinTimeout == 0 {
		o.JoinTimeout = 5 * time.Second
	}
	if o.MaxAttachments == 0 {
		o.MaxAttachments = 10
	}
	o.MaxAttachments = max(o.MaxAttachments, 0)
	if o.MaxPayload == 0 {
		o.MaxPayload = 1_000_000
	}
	if o.SendBuffer == 0 {
		o.SendBuffer = 1 << 20
	}
	if o.Path == "" {
		o.Path = "/socket.io/"
	}
	if o.Adapter == nil {
		o.Adapter = func(Local) Adapter { return noAdapter{} }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Metrics = o.Metrics.withDefaults()
	return o
}

func (o Options) engine() engineio.Options {
	return engineio.Options{
		PingInterval:   o.PingInterval,
		PingTimeout:    o.PingTimeout,
		UpgradeTimeout: o.UpgradeTimeout,
		OpenTimeout:    o.ConnectTimeout,
		WriteTimeout:   o.WriteTimeout,
		PartialTimeout: o.PartialTimeout,
		MaxPayload:     o.MaxPayload,
		MaxFrames:      o.MaxFrames,
		SendBuffer:     o.SendBuffer,
		MaxSessions:    o.MaxSessions,
		KeepHeaders:    o.KeepHeaders,
		DropQuery:      o.DropQuery,
		CompressFrom:   o.CompressFrom,
		CheckOrigin:    o.CheckOrigin,
		Admit:          o.Admit,
		NewSessionID:   o.NewSessionID,
		Forward:        o.Forward,
		Address:        o.Address,

		MaxConfirmed:             o.MaxJoined,
		MaxUnconfirmed:           o.MaxPending,
		MaxUnconfirmedPerAddress: o.MaxPendingPerAddress,

		Logger:   o.Logger,
		Observer: o.Metrics.observer(),
	}
}

// Server is a Socket.IO server: an http.Handler with namespaces. Its methods are safe for concurrent
// use.
type Server struct {
	opts   Options
	engine *engineio.Server

	ctx  context.Context // ends with the server; parent of what user code gets
	stop context.CancelFunc
	wg   sync.WaitGroup // clients, and the goroutines that run user code

	mu         sync.RWMutex
	namespaces map[string]*Namespace

	sockets   atomic.Int64
	delivered atomic.Int64
}

// NewServer returns a running server, which must be closed. Namespaces should get their middlewares and
// handlers before the first request.
func NewServer(opts Options) *Server {
	opts = opts.withDefaults()
	ctx, stop := context.WithCancel(context.Background())
	srv := &Server{opts: opts, ctx: ctx, stop: stop, namespaces: make(map[string]*Namespace)}
	srv.engine = engineio.NewServer(opts.engine(), srv.newClient)
	return srv
}

// ServeHTTP serves the requests below Options.Path.
func (srv *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path := r.URL.Path; path != srv.opts.Path && path != strings.TrimSuffix(srv.opts.Path, "/") {
		http.NotFound(w, r)
		return
	}
	srv.engine.ServeHTTP(w, r)
}

// Of returns the namespace of that name, creating it if needed. Only namespaces that Of has created can
// be joined.
func (srv *Server) Of(name string) *Namespace {
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	nsp := srv.namespaces[name]
	if nsp == nil {
		nsp = newNamespace(srv, name)
		srv.namespaces[name] = nsp
	}
	return nsp
}

func (srv *Server) namespace(name []byte) *Namespace {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return srv.namespaces[string(name)]
}

func (srv *Server) allNamespaces() []*Namespace {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	all := make([]*Namespace, 0, len(srv.namespaces))
	for _, nsp := range srv.namespaces {
		all = append(all, nsp)
	}
	return all
}

// Joined returns the number of sessions that are in a namespace. It costs nothing.
func (srv *Server) Joined() int { return srv.engine.ConfirmedCount() }

// Stats are the server's figures of this moment.
type Stats struct {
	Sessions          int   // Engine.IO sessions
	WebSocketSessions int   // those of them on WebSocket
	Sockets           int   // connected sockets of all namespaces
	Rooms             int   // rooms of all namespaces
	Buffered          int   // bytes that wait for clients
	Delivered         int64 // events handed to sockets since the start
}

// Stats looks at every session; call it as often as metrics are read, not more.
func (srv *Server) Stats() Stats {
	st := Stats{Sockets: int(srv.sockets.Load()), Delivered: srv.delivered.Load()}
	st.Sessions, st.WebSocketSessions = srv.engine.SessionCount()
	for _, s := range srv.engine.Sessions() {
		st.Buffered += s.Buffered()
	}
	for _, nsp := range srv.allNamespaces() {
		st.Rooms += nsp.rooms.count()
	}
	return st
}

// Shutdown refuses new requests, closes all sessions so that clients connect elsewhere, and returns when
// everything that the server started has stopped, handlers included. When ctx ends, connections are cut,
// handlers that still run are left alone, and ctx's error is returned.
func (srv *Server) Shutdown(ctx context.Context) error {
	srv.stop()
	err := srv.engine.Shutdown(ctx)
	err = errors.Join(err, srv.waitHandlers(ctx))
	for _, nsp := range srv.allNamespaces() {
		if closeErr := nsp.adapter.Close(); closeErr != nil {
			srv.opts.Logger.Warn("closing an adapter", "namespace", nsp.name, "error", closeErr)
		}
	}
	return err
}

func (srv *Server) waitHandlers(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		srv.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close is Shutdown with a few seconds for the last messages.
func (srv *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	return srv.Shutdown(ctx)
}

// guard runs user code and turns a panic into a log line.
func (srv *Server) guard(what string, fn func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			srv.opts.Logger.Error("panic", "in", what, "value", v, "stack", stack())
		}
	}()
	fn()
	return true
}
