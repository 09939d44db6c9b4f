package socketio

// The server: its options, its namespaces, and the start and the end of both layers.

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
	ConnectTimeout time.Duration // time for a client in no namespace to join one, including middlewares; 45 s
	UpgradeTimeout time.Duration // time to upgrade from polling to WebSocket; 10 s
	WriteTimeout   time.Duration // timeout of a write without progress, see engineio.Options; 10 s
	PartialTimeout time.Duration // time to complete a fragmented message or a packet with attachments; 30 s
	JoinTimeout    time.Duration // timeout of Socket.Join; 5 s
	MaxPayload     int           // bytes of a client's message or POST body; 1,000,000
	MaxFrames      int           // frames or polling packets of one client per second; 10,000; negative: no limit
	MaxAttachments int           // binary attachments of one packet; 10; negative: none
	SendBuffer     int           // bytes queued for one client; 1 MiB
	MaxSessions    int           // open sessions, more get 503; 0: no limit
	KeepHeaders    []string      // headers in Handshake; nil: all
	DropQuery      bool          // no query in Handshake
	CompressFrom   int           // see engineio.Options: minimum bytes of a compressed message; 0: no compression

	// MaxConnectErrors is the number of CONNECT packets of a session that are refused. The session is closed
	// after the answer to the last one, so that nobody tries credentials over one connection. The default is
	// 3; negative: no limit.
	MaxConnectErrors int

	// MaxJoined bounds the sessions that have joined a namespace. A further one is closed after its
	// middlewares have admitted it, so that its client reconnects, perhaps to another node. 0 means no limit.
	MaxJoined int
	// MaxPending bounds the sessions that have not joined a namespace, MaxPendingPerAddress those of one
	// address. A further one closes the oldest. 0 means no limit. Address returns the address of a handshake
	// for this purpose; nil means the host of RemoteAddr.
	MaxPending           int
	MaxPendingPerAddress int
	Address              func(*http.Request) string

	// Path is the path of the server; other paths get 404. The default is "/socket.io/".
	Path string
	// Adapter connects each namespace to the other nodes of a cluster. Nil means a single node.
	Adapter func(Local) Adapter
	// LocalIDs saves a subscription per socket in a cluster: other nodes then cannot emit to a socket by its
	// ID.
	LocalIDs bool
	// CheckOrigin reports whether a page of the request's Origin may connect. Nil allows any origin,
	// without credentials.
	CheckOrigin func(*http.Request) bool
	// Admit refuses a handshake, with an error, before a session is created; see engineio.AdmissionError.
	Admit func(*http.Request) error
	// NewSessionID and Forward let several nodes share one address without sticky sessions; see
	// engineio.Options.
	NewSessionID func() string
	Forward      func(w http.ResponseWriter, r *http.Request, sid string) bool

	Logger  *slog.Logger // nil: no logs
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

	Delivered func(namespace string, sockets int) // one broadcast, to this number of local sockets
}

// withDefaults replaces missing callbacks by empty ones.
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

// observer returns the callbacks of the layer below.
func (m Metrics) observer() engineio.Observer {
	o := engineio.Observer{Opened: m.SessionOpened, Upgraded: m.SessionUpgraded, Refused: m.RequestRefused}
	if closed := m.SessionClosed; closed != nil {
		o.Closed = func(transport string, reason engineio.Reason) { closed(transport, string(reason)) }
	}
	return o
}

// withDefaults fills in what is not set.
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
	if o.MaxConnectErrors == 0 {
		o.MaxConnectErrors = 3
	}
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

// engine returns the options of the layer below.
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

	ctx  context.Context // ends with the server; parent of the contexts passed to user code
	stop context.CancelFunc
	wg   sync.WaitGroup // clients, and the goroutines that run user code

	mu         sync.RWMutex
	namespaces map[string]*Namespace

	sockets   atomic.Int64
	delivered atomic.Int64
}

// NewServer returns a running server, which must be closed. Middlewares and handlers should be added
// before the first request.
func NewServer(opts Options) *Server {
	opts = opts.withDefaults()
	ctx, stop := context.WithCancel(context.Background())
	srv := &Server{opts: opts, ctx: ctx, stop: stop, namespaces: make(map[string]*Namespace)}
	srv.engine = engineio.NewServer(opts.engine(), srv.newClient)
	return srv
}

// ServeHTTP serves the requests for Options.Path.
func (srv *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if path != srv.opts.Path && path != strings.TrimSuffix(srv.opts.Path, "/") {
		http.NotFound(w, r)
		return
	}
	srv.engine.ServeHTTP(w, r)
}

// Of returns the namespace with a name, creating it if missing. Clients can join only namespaces created
// by Of.
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

// namespace returns a namespace that Of has made, or nil: clients cannot create any.
func (srv *Server) namespace(name []byte) *Namespace {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return srv.namespaces[string(name)]
}

// allNamespaces returns the namespaces in no order.
func (srv *Server) allNamespaces() []*Namespace {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	all := make([]*Namespace, 0, len(srv.namespaces))
	for _, nsp := range srv.namespaces {
		all = append(all, nsp)
	}
	return all
}

// Joined returns the number of sessions that have joined a namespace. It takes constant time.
func (srv *Server) Joined() int { return srv.engine.ConfirmedCount() }

// Stats are current figures of a server.
type Stats struct {
	Sessions          int   // Engine.IO sessions
	WebSocketSessions int   // of these, on WebSocket
	Sockets           int   // connected sockets of all namespaces
	Rooms             int   // rooms of all namespaces
	Buffered          int   // bytes queued for clients
	Delivered         int64 // events delivered to sockets since the start
}

// Stats returns current figures. It iterates over all sessions; call it no more often than metrics are scraped.
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

// Shutdown refuses new requests, closes all sessions so that clients reconnect to other nodes, and returns when
// all goroutines of the server have stopped, including handlers. If ctx ends first, it cuts connections, leaves
// handlers running, and returns ctx's error.
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

// waitHandlers waits until no handler runs, or returns the error of ctx.
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

// Close is Shutdown with a timeout of 4 seconds.
func (srv *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	return srv.Shutdown(ctx)
}

// guard runs user code. It logs a panic and returns false.
func (srv *Server) guard(what string, fn func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			srv.opts.Logger.Error("panic", "in", what, "value", v, "stack", stack())
		}
	}()
	fn()
	return true
}
