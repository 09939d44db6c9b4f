// Package admission limits the load of a gateway: joined connections, handshakes per second and of an
// address, and sockets per visitor. Refused requests get Retry-After; accepted connections are not affected.
// The engine limits connections that have not sent a token yet.
package admission

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/socketio"
)

const (
	// Values of Retry-After: time for other clients to leave, for the rate limiter to refill, and for dead
	// sockets of the visitor to hit the ping timeout.
	fullWait    = 10 * time.Second
	rateWait    = time.Second
	visitorWait = 30 * time.Second
)

// Config sets the limits. Zero means no limit.
type Config struct {
	MaxConnections       int
	ConnectRate          int // handshakes per second
	MaxSocketsPerVisitor int

	// ByAddress limits the handshakes of an address, which Address returns. nil: no limit.
	ByAddress *ratelimit.Limiter
	Address   func(*http.Request) string
	// Connections returns the number of joined connections.
	Connections func() int
	// Refuse answers a refused handshake; Refusal returns the error from the request's context.
	Refuse     http.Handler
	Registerer prometheus.Registerer // nil: no metrics
}

// Limiter admits connections and sockets. Its methods are safe for concurrent use.
type Limiter struct {
	cfg      Config
	rate     *rate.Limiter
	refusals *prometheus.CounterVec
	shut     atomic.Bool

	visitors sync.Mutex // makes counting a visitor's sockets and refusing one atomic
}

// New returns a limiter with the limits of cfg.
func New(cfg Config) (*Limiter, error) {
	d := &Limiter{cfg: cfg, refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_gateway_refusals_total",
		Help: "Refused connections, by the limit that was reached (address, connections, rate, visitor) or stopping.",
	}, []string{"bound"})}
	if cfg.ConnectRate > 0 {
		d.rate = rate.NewLimiter(rate.Limit(cfg.ConnectRate), cfg.ConnectRate)
	}
	if cfg.Registerer == nil {
		return d, nil
	}
	return d, cfg.Registerer.Register(d.refusals)
}

// Shut refuses all new connections from now on: this gateway is stopping, and others accept them.
func (l *Limiter) Shut() { l.shut.Store(true) }

// Handler passes handshakes within the limits, and all other requests, to next. Concurrent handshakes
// may exceed MaxConnections; next enforces the limit when they join.
func (l *Limiter) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isHandshake(r) {
			if err := l.admit(r); err != nil {
				l.refuse(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// UpgradeHandler passes upgrades of sessions within the limit of their address, and all other requests, to
// next. It is for sessions whose upgrade brings a token.
func (l *Limiter) UpgradeHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("sid") != "" && query.Get("transport") == "websocket" {
			if err := l.admitAddress(r); err != nil {
				l.refuse(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isHandshake reports whether the engine treats r as a handshake.
func isHandshake(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Get("sid") == ""
}

// admit checks the limit of the address first: what it refuses does not count for the limits that all share.
func (l *Limiter) admit(r *http.Request) error {
	if l.shut.Load() {
		l.refusals.WithLabelValues("stopping").Inc()
		return refusal(apperr.ServiceUnavailable, rateWait)
	}
	if err := l.admitAddress(r); err != nil {
		return err
	}
	if l.cfg.MaxConnections > 0 && l.cfg.Connections() >= l.cfg.MaxConnections {
		l.refusals.WithLabelValues("connections").Inc()
		return refusal(apperr.TooManyConnections, fullWait)
	}
	if l.rate != nil && !l.rate.Allow() {
		l.refusals.WithLabelValues("rate").Inc()
		return refusal(apperr.TooManyConnections, rateWait)
	}
	return nil
}

// admitAddress checks the rate of the client's address.
func (l *Limiter) admitAddress(r *http.Request) error {
	taken := l.cfg.ByAddress.Take(r.Context(), l.cfg.Address(r))
	if taken.Allowed {
		return nil
	}
	l.refusals.WithLabelValues("address").Inc()
	return refusal(apperr.TooManyConnections, max(rateWait, taken.Wait))
}

// refusal returns a public error with a Retry-After.
func refusal(d apperr.Definition, wait time.Duration) *apperr.Error {
	err := d.New()
	err.RetryAfter = wait
	return err
}

type refusalKey struct{}

// Refusal returns the error of a request that was passed to Config.Refuse.
func Refusal(ctx context.Context) error {
	err, _ := ctx.Value(refusalKey{}).(error)
	return err
}

// refuse passes the request to Config.Refuse, with CORS headers so that pages of any origin can read the error.
func (l *Limiter) refuse(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
	l.cfg.Refuse.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), refusalKey{}, err)))
}

// Guard limits the sockets of a visitor on this gateway. It must be called after the middleware that joins a
// socket to its visitor's room is added: it counts the sockets in the room.
func (l *Limiter) Guard(n *socketio.Namespace) {
	if l.cfg.MaxSocketsPerVisitor > 0 {
		n.Use(func(_ context.Context, s *socketio.Socket) error { return l.admitSocket(n, s) })
	}
}

// refusalData is the data of a CONNECT_ERROR.
type refusalData struct {
	Code       string `json:"code"`
	RetryAfter int    `json:"retryAfter"` // seconds
}

// admitSocket refuses a socket that its visitor has too many of, and takes it out of the room.
func (l *Limiter) admitSocket(n *socketio.Namespace, s *socketio.Socket) error {
	l.visitors.Lock()
	defer l.visitors.Unlock()
	for _, room := range s.Rooms() {
		if n.RoomSize(room) <= l.cfg.MaxSocketsPerVisitor {
			continue
		}
		s.Leave(room) // at once, so that of concurrent joins only the excess is refused
		l.refusals.WithLabelValues("visitor").Inc()
		return &socketio.ConnectError{
			Message: apperr.TooManyConnections.Message,
			Data:    refusalData{apperr.TooManyConnections.Reason, int(visitorWait / time.Second)},
		}
	}
	return nil
}
