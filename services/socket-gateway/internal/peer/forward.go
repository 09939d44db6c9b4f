package peer

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// hopHeader marks a forwarded request, which prevents forwarding loops.
const hopHeader = "Parley-Forwarded-By"

const (
	dialTimeout = 2 * time.Second
	idlePeers   = 1024 // idle connections per gateway: each waiting poll occupies one
)

// Forwarder forwards requests to the gateways that hold their sessions.
type Forwarder struct {
	id       ID
	registry *Registry
	proxy    *httputil.ReverseProxy
	requests *prometheus.CounterVec

	ctx  context.Context // ends with Close
	stop context.CancelFunc

	draining atomic.Bool // upgrades are refused

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// NewForwarder returns a forwarder, which must be closed. With a nil registerer its metrics are not exported.
func NewForwarder(id ID, registry *Registry, registerer prometheus.Registerer, log *slog.Logger) (*Forwarder, error) {
	ctx, stop := context.WithCancel(context.Background())
	f := &Forwarder{
		id:       id,
		registry: registry,
		ctx:      ctx,
		stop:     stop,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_gateway_forwards_total",
			Help: "Requests for sessions of other gateways: forwarded, failed (the gateway did not answer), " +
				"gone (no such gateway).",
		}, []string{"result"}),
	}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: f.rewrite,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			MaxIdleConnsPerHost: idlePeers,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true,
		},
		ErrorHandler: f.failed,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if registerer == nil {
		return f, nil
	}
	return f, registerer.Register(f.requests)
}

// hop is the state of a forwarded request, stored in its context.
type hop struct {
	addr     string
	original *http.Request
	next     http.Handler
}

type hopKey struct{}

// Handler forwards requests for sessions of other gateways and serves all others with next.
func (f *Forwarder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, foreign := f.foreignHolder(r)
		if !foreign {
			next.ServeHTTP(w, r)
			return
		}
		if f.draining.Load() && r.Header.Get("Upgrade") != "" {
			next.ServeHTTP(w, r)
			return
		}
		addr, ok := f.registry.Lookup(r.Context(), id)
		if !ok || !f.start() {
			f.requests.WithLabelValues("gone").Inc()
			next.ServeHTTP(w, r)
			return
		}
		defer f.running.Done()
		f.forward(w, r, hop{addr: addr, original: r, next: next})
	})
}

// foreignHolder returns the other gateway that holds the session of r. Preflights are served by any gateway.
func (f *Forwarder) foreignHolder(r *http.Request) (ID, bool) {
	if r.Method == http.MethodOptions || !strings.Contains(r.URL.RawQuery, separator) || r.Header.Get(hopHeader) != "" {
		return "", false
	}
	id, ok := holderOf(r.URL.Query().Get("sid"))
	return id, ok && id != f.id
}

// start counts a forwarded request, or returns false if the forwarder is closed.
func (f *Forwarder) start() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.running.Add(1)
	return true
}

// forward returns when the response is written or, for a WebSocket, when the connection has ended.
func (f *Forwarder) forward(w http.ResponseWriter, r *http.Request, h hop) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), hopKey{}, h))
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)()
	f.requests.WithLabelValues("forwarded").Inc()
	f.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// rewrite addresses a request to the gateway of its session and marks it as forwarded.
func (f *Forwarder) rewrite(p *httputil.ProxyRequest) {
	h := p.In.Context().Value(hopKey{}).(hop)
	p.SetURL(&url.URL{Scheme: "http", Host: h.addr})
	p.Out.Host = p.In.Host
	// the proxy drops what came; the client's address is there
	p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	p.SetXForwarded()
	p.Out.Header.Set(hopHeader, string(f.id))
}

// failed serves a request whose gateway did not respond with next, which does not know the session and says so.
func (f *Forwarder) failed(w http.ResponseWriter, r *http.Request, _ error) {
	h := r.Context().Value(hopKey{}).(hop)
	if h.original.Context().Err() != nil {
		return // the client has disconnected
	}
	f.requests.WithLabelValues("failed").Inc()
	h.next.ServeHTTP(w, h.original)
}

// Drain refuses upgrades of other gateways' sessions from now on: their clients keep polling. A client whose WebSocket
// ends while it upgrades waits for its ping timeout, so that none may be upgrading when Close cuts the connections.
func (f *Forwarder) Drain() { f.draining.Store(true) }

// Close ends all forwarded requests, including WebSockets, and returns when they have ended.
func (f *Forwarder) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stop()
	f.running.Wait()
	f.proxy.Transport.(*http.Transport).CloseIdleConnections()
}
