package socketgateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/web"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/socket-gateway/internal/peer"
	"github.com/parley-chat/parley/services/socket-gateway/internal/realtime"
)

const (
	serviceName = "socket-gateway"
	socketPath  = "/socket.io/"

	// grace is the shutdown timeout for requests in flight; sockets are closed before it starts.
	grace = 5 * time.Second

	connectTimeout = 10 * time.Second // of a Config written by hand
	partialTimeout = 10 * time.Second // to complete a fragmented message or packet
	maxMessage     = 16 << 10         // bytes: several times the largest token

	// maxConnectErrors is the number of refused CONNECT packets after which a connection is closed: each may
	// cost a signature.
	maxConnectErrors = 3
)

// Config configures a gateway.
type Config struct {
	service.Base
	config.Redis

	HTTPAddr       string          `env:"HTTP_ADDR" envDefault:":8080" doc:"address of /socket.io/"`
	JWKSURL        string          `env:"JWKS_URL" doc:"keys of the visitor tokens: /.well-known/jwks.json of the widget-api; required"`
	TrustedProxies config.Prefixes `env:"TRUSTED_PROXIES" doc:"networks, separated by commas, whose X-Forwarded-For is trusted: the load balancers in front of the API"`
	RedisSharded   bool            `env:"REDIS_SHARDED" envDefault:"false" doc:"sharded pub/sub (Redis 7), for a Redis Cluster"`
	DrainTimeout   time.Duration   `env:"DRAIN_TIMEOUT" envDefault:"5s" valid:"min 0s" doc:"time over which a gateway that stops closes its sockets; 0: at once"`
	AdvertiseAddr  string          `env:"GATEWAY_ADVERTISE_ADDR" doc:"host:port at which the other gateways reach this one; default: this host's first address and the port of HTTP_ADDR"`
	MaxConnections int             `env:"MAX_CONNECTIONS" envDefault:"0" valid:"min 0" doc:"maximum number of connections with a token on a gateway; 0: no limit"`
	ConnectRate    int             `env:"CONNECT_RATE" envDefault:"0" valid:"min 0" doc:"maximum number of new connections per second on a gateway; 0: no limit"`
	SocketIOLegacy bool            `env:"SOCKETIO_LEGACY" envDefault:"false" doc:"serve clients of Socket.IO 1 and 2 as well, with their token in the query"`

	PingInterval   time.Duration `env:"-" constant:"25s"` // between two pings to a socket
	PingTimeout    time.Duration `env:"-" constant:"20s"` // of the answer to a ping
	ConnectTimeout time.Duration `env:"-" constant:"10s"` // time that a connection has to join with a token

	RecoveryBytes config.Rate `env:"-" none:"0" constant:"64MiB/1m" doc:"bytes of missed replies that one company's visitors recover on a gateway; the next load the history instead"`
	RecoveryRate  config.Rate `env:"-" none:"0" constant:"30/1m" doc:"recoveries of missed replies of one visitor on a gateway; the next load the history instead"`
	AddressRate   config.Rate `env:"-" none:"0" constant:"300/3s" doc:"handshakes of one address on a gateway"`

	MaxSocketsPerVisitor int `env:"-" none:"0" constant:"20" doc:"sockets of one visitor on a gateway"`
	// MaxPending is the number of connections that have not sent a token yet, in addition to MaxConnections; one more
	// closes the oldest.
	MaxPending           int `env:"-" constant:"10000"`
	MaxPendingPerAddress int `env:"-" none:"0" constant:"1000" doc:"connections of one address (an IPv6 /64) that have not sent a token yet"`
	// MaxFrameRate is the number of frames, or packets over polling, that a connection may send in a second before
	// it is closed; 0: no limit.
	MaxFrameRate int `env:"-" constant:"100"`

	Presence   presence.Store       `env:"-"` // which visitors are connected; nil: in Redis, if configured
	KeySource  credential.KeySource `env:"-"` // instead of JWKSURL
	Listener   net.Listener         `env:"-"` // used instead of HTTPAddr
	LegacyArgv []string             `env:"-"` // the process for old clients; nil: this binary with "legacy"
}

// Validate checks the gateway's own settings; see [config.Check].
func (c Config) Validate() []string {
	var problems []string
	if c.KeySource == nil && !config.WebURL(c.JWKSURL) {
		problems = append(problems, "JWKS_URL must be an http or https URL")
	}
	if c.SocketIOLegacy && c.RedisURL == "" {
		problems = append(problems, "REDIS_URL is required with SOCKETIO_LEGACY")
	}
	if host, _, err := net.SplitHostPort(c.AdvertiseAddr); c.AdvertiseAddr != "" && (err != nil || host == "") {
		problems = append(problems, "GATEWAY_ADVERTISE_ADDR must be host:port")
	}
	return problems
}

// Service is one gateway. Run may be called once.
type Service struct {
	cfg     Config
	handler *web.Handler

	id      string // unique among the running gateways
	bus     *bus.Bus
	redis   *redisConn             // nil: a single gateway without Redis
	remote  *credential.RemoteKeys // nil with Config.KeySource
	sockets *socketio.Server
	gateway *realtime.Gateway
	ingress *ingress
}

// New validates cfg and returns a gateway; it opens no connections. The error lists every missing or invalid field.
func New(cfg Config) (*Service, error) {
	if err := service.Check(&cfg); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, handler: web.NewHandler()}, nil
}

// Handler returns the handler of /socket.io/. It serves requests while Run runs.
func (s *Service) Handler() http.Handler { return s.handler }

// Run serves sockets and delivers replies until ctx is done. It then refuses new connections, emits the
// replies that it has fetched, releases its partitions, closes the sockets one by one over DrainTimeout so
// that their clients reconnect to other gateways, and returns nil. NATS, Redis and the keys may be
// unavailable at the start: sockets are refused until they are available.
func (s *Service) Run(ctx context.Context) error {
	return service.Run(ctx, serviceName, s.cfg.Base, s.open)
}

// open makes everything in the order of its dependencies and returns the work that serve does. It serves
// nothing yet.
func (s *Service) open(p *service.Process) (_ service.Work, err error) {
	keys := s.cfg.KeySource
	if keys == nil {
		s.remote, err = credential.NewRemoteKeys(credential.RemoteKeysConfig{URL: s.cfg.JWKSURL, Logger: s.cfg.Logger})
		if err != nil {
			return nil, err
		}
		keys = s.remote
	}
	metrics, err := realtime.NewMetrics(s.cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s.redis, err = openRedis(s.cfg, metrics)
	if err != nil {
		return nil, err
	}
	p.OnClose(s.redis.close)
	limits, err := openLimits(s.cfg)
	if err != nil {
		return nil, err
	}
	p.OnClose(limits.Close)
	s.bus, err = p.Bus(nil, streams()...)
	if err != nil {
		return nil, err
	}
	s.checks(p)
	id := peer.NewID()
	s.id = string(id)
	s.sockets = socketio.NewServer(socketio.Options{
		NewSessionID: id.SessionID,
		PingInterval: s.cfg.PingInterval,
		PingTimeout:  s.cfg.PingTimeout,
		Path:         socketPath,

		// Visitors send only small events: tokens, typing, read cursors.
		ConnectTimeout:       cmp.Or(s.cfg.ConnectTimeout, connectTimeout),
		PartialTimeout:       partialTimeout,
		MaxPayload:           maxMessage,
		MaxFrames:            cmp.Or(s.cfg.MaxFrameRate, -1),
		MaxAttachments:       -1,
		MaxConnectErrors:     maxConnectErrors,
		MaxJoined:            s.cfg.MaxConnections,
		MaxPending:           s.cfg.MaxPending,
		MaxPendingPerAddress: s.cfg.MaxPendingPerAddress,
		Address:              httpapi.AddressOf(s.cfg.TrustedProxies),
		KeepHeaders:          realtime.KeptHeaders(), // headers are kept in memory for each socket
		DropQuery:            true,

		LocalIDs: true, // nothing is emitted to socket ids; subscribing to each would cost a second round trip
		Adapter:  s.redis.newAdapter(s.cfg),
		Logger:   s.cfg.Logger,
		Metrics:  metrics.Engine(),
	})
	p.OnClose(s.sockets.Close)
	namespace := s.sockets.Of(realtime.Namespace)
	s.gateway = realtime.New(realtime.Config{
		Namespace: namespace,
		Bus:       s.bus,
		Tokens:    credential.NewVerifier(keys, p.Now()),
		Origins:   s.bus.RPC().AllowedOrigins,
		Metrics:   metrics,
		Logger:    s.cfg.Logger, Now: p.Now(), Tracer: s.cfg.Tracer,
		RecoveryRate: s.cfg.RecoveryRate, RecoveryBytes: s.cfg.RecoveryBytes, Limits: limits,
		Presence: s.presence(), ID: s.id,
		// called only while serving: s.ingress is set
		Revoked: func(ctx context.Context, chatUserID string) { s.ingress.legacy.Revoke(ctx, chatUserID) },
	})
	if s.redis != nil {
		s.redis.gateway.Store(s.gateway)
	}
	if err := metrics.Watch(s.sockets.Stats); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s.ingress, err = s.openIngress(id, namespace)
	if err != nil {
		return nil, err
	}
	p.OnClose(s.ingress.close)
	stopHearing, err := s.bus.RPC().OnInvalidate(s.invalidated)
	if err != nil {
		return nil, fmt.Errorf("listening for invalidations: %w", err)
	}
	p.OnClose(func() error { stopHearing(); return nil })
	s.handler.Open(s.ingress.handler)
	return func(ctx context.Context) error { return s.serve(ctx, p) }, nil
}

// streams returns the streams that a gateway needs: the first two are read, POSITIONS has the offsets of both, STATUS
// gets the receipts.
func streams() []string {
	return []string{
		subject.Replies, subject.Parts, subject.Positions, subject.Status, subject.Dead, subject.Revocations,
	}
}

// presence returns the store of connected visitors; nil: presence is not stored.
func (s *Service) presence() presence.Store {
	if s.cfg.Presence != nil || s.redis == nil {
		return s.cfg.Presence
	}
	return presence.NewRedis(s.redis.client)
}

// checks adds the readiness checks for Redis and the visitor keys; NATS has its own.
func (s *Service) checks(p *service.Process) {
	if s.redis != nil {
		p.Check(ops.Check{Name: "redis", Check: s.redis.ready})
	}
	if s.remote != nil {
		p.Check(ops.Check{Name: "keys", Check: s.remote.Ready})
	}
}

// serve runs the consumers until ctx is done, and everything else until the consumers have finished and the
// sockets are closed.
func (s *Service) serve(ctx context.Context, p *service.Process) error {
	ln, err := web.Listen(p, s.cfg.Listener, s.cfg.HTTPAddr)
	if err != nil {
		return err
	}
	rest, stopRest := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRest()
	group, running := errgroup.WithContext(ctx)
	s.ingress.register(ctx, s.advertiseAddr(ln))
	group.Go(func() error { s.ingress.run(running, rest, s.advertiseAddr(ln)); return nil })
	group.Go(func() error { return s.gateway.Run(rest) })
	group.Go(func() error {
		self := announcement{ID: s.id, StartedAt: s.cfg.Now(), Alone: s.redis == nil}
		return requireSingleReplica(running, s.bus.RPC(), self)
	})
	if s.redis != nil {
		group.Go(func() error { s.redis.watch(rest); return nil })
	}
	if s.remote != nil {
		group.Go(func() error { return s.remote.Run(rest) })
	}
	if ln != nil {
		group.Go(func() error { return httpapi.Serve(rest, ln, s.handler, s.cfg.Logger, grace) })
	}
	group.Go(func() error {
		defer stopRest()
		defer context.AfterFunc(running, s.ingress.limiter.Shut)()
		err := s.gateway.Read(running)
		s.gateway.Drain(rest, s.cfg.DrainTimeout)
		return errors.Join(err, s.sockets.Close())
	})
	defer s.cfg.Logger.InfoContext(ctx, "stopped")
	return group.Wait()
}

// invalidated handles invalidations of the visitor keys; the realtime gateway handles those of applications.
func (s *Service) invalidated(kind, _ string) {
	if kind == credential.KindVisitorKeys && s.remote != nil {
		s.remote.Changed()
	}
}
