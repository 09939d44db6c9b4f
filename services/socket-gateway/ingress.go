package socketgateway

// What a request passes before the engine: peer, admission, and legacy for old clients. service.go opens and
// runs it.

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/services/socket-gateway/internal/admission"
	"github.com/parley-chat/parley/services/socket-gateway/internal/legacy"
	"github.com/parley-chat/parley/services/socket-gateway/internal/peer"
	"github.com/parley-chat/parley/services/socket-gateway/internal/realtime"
)

// ingress handles requests before the engine: it forwards those for sessions of other gateways, then applies
// the limits. Requests of old clients go to the legacy server instead of the engine.
type ingress struct {
	handler   http.Handler
	limiter   *admission.Limiter
	registry  *peer.Registry
	forwarder *peer.Forwarder
	legacy    *legacy.Process // nil: the engine refuses old clients
}

// openIngress returns what handles requests before the engine. On an error nothing stays open.
func (s *Service) openIngress(id peer.ID, namespace *socketio.Namespace) (_ *ingress, err error) {
	registry := peer.NewRegistry(s.redis.universalClient(), id, s.cfg.Logger)
	forwarder, err := peer.NewForwarder(id, registry, s.cfg.Registerer, s.cfg.Logger)
	if err != nil {
		return nil, err
	}
	i := &ingress{registry: registry, forwarder: forwarder}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.close())
		}
	}()
	if s.cfg.SocketIOLegacy {
		i.legacy, err = s.openLegacy(id)
		if err != nil {
			return nil, err
		}
	}
	others := httpapi.New(httpapi.Config{
		Service:    serviceName,
		Logger:     s.cfg.Logger,
		Registerer: s.cfg.Registerer,
		Tracer:     s.cfg.Tracer,
		Proxies:    s.cfg.TrustedProxies,
	})
	others.GET(socketPath, refused)
	others.GET(strings.TrimSuffix(socketPath, "/"), refused)
	i.limiter, err = admission.New(admission.Config{
		MaxConnections:       s.cfg.MaxConnections,
		ConnectRate:          s.cfg.ConnectRate,
		MaxSocketsPerVisitor: s.cfg.MaxSocketsPerVisitor,
		ByAddress:            ratelimit.New(ratelimit.Config{Name: "connect", Rate: s.cfg.AddressRate, Now: s.cfg.Now}),
		Address:              httpapi.AddressOf(s.cfg.TrustedProxies),
		Connections:          func() int { return s.sockets.Joined() + i.legacy.Connections() },
		Refuse:               others,
		Registerer:           s.cfg.Registerer,
	})
	if err != nil {
		return nil, err
	}
	i.limiter.Guard(namespace)
	sockets := i.limiter.Handler(s.sockets)
	if i.legacy != nil {
		old := i.limiter.Handler(i.limiter.UpgradeHandler(i.legacy))
		sockets = legacy.Route(old, sockets)
	}
	i.handler = routes(forwarder.Handler(sockets), others)
	return i, nil
}

// openLegacy returns the process for old clients, not started yet.
func (s *Service) openLegacy(id peer.ID) (*legacy.Process, error) {
	return legacy.New(legacy.Config{
		Argv: s.cfg.LegacyArgv,
		Setup: legacy.Setup{
			RedisURL:      s.cfg.RedisURL,
			RedisSharded:  s.cfg.RedisSharded,
			PingInterval:  s.cfg.PingInterval,
			PingTimeout:   s.cfg.PingTimeout,
			SessionPrefix: id.Prefix(),
			MaxSockets:    s.cfg.MaxSocketsPerVisitor,
			DrainTimeout:  s.cfg.DrainTimeout,
		},
		MaxUnauthorized:           s.cfg.MaxPending,
		MaxUnauthorizedPerAddress: s.cfg.MaxPendingPerAddress,
		Address:                   httpapi.AddressOf(s.cfg.TrustedProxies),
		Tokens:                    s.gateway,
		Room:                      realtime.Room,
		Registerer:                s.cfg.Registerer,
		Logger:                    s.cfg.Logger,
	})
}

// routes returns the gateway's whole HTTP handler. Requests for the engine bypass the API middleware: a log
// line for each poll is useless, and Engine.IO has its own errors.
func routes(sockets, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == socketPath || r.URL.Path == strings.TrimSuffix(socketPath, "/") {
			sockets.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// refused answers a handshake above a limit with an API error.
func refused(c echo.Context) error { return admission.Refusal(c.Request().Context()) }

// advertiseAddr returns the address for the registry. It is empty if the gateway has no listener of its own
// and AdvertiseAddr is not set.
func (s *Service) advertiseAddr(ln net.Listener) string {
	if s.cfg.AdvertiseAddr != "" || ln == nil {
		return peer.CanonicalAddr(s.cfg.AdvertiseAddr)
	}
	return peer.AdvertiseAddr(ln.Addr())
}

// register registers the gateway before it serves: requests for its first sessions may reach other gateways at once.
func (i *ingress) register(ctx context.Context, addr string) {
	if addr != "" {
		_ = i.registry.Register(ctx, addr) // run retries; the loss of Redis is logged elsewhere
	}
}

// run keeps the gateway registered until rest is done, then ends the forwarded requests. The legacy server
// closes its sockets when ctx is done, concurrently with the gateway's own.
func (i *ingress) run(ctx, rest context.Context, addr string) {
	var running sync.WaitGroup
	defer running.Wait()
	defer i.forwarder.Close()
	if addr != "" {
		running.Go(func() { i.registry.Run(rest, addr) })
	}
	running.Go(func() { i.legacy.Run(ctx) })
	defer context.AfterFunc(ctx, i.forwarder.Drain)()
	<-rest.Done()
}

// close ends the forwarded requests and removes the files of the legacy server.
func (i *ingress) close() error {
	i.forwarder.Close()
	return i.legacy.Close()
}
