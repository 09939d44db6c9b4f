package socketgateway

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/redisclient"
	"github.com/parley-chat/parley/services/socket-gateway/internal/legacy"
	"github.com/parley-chat/parley/services/socket-gateway/internal/peer"
	"github.com/parley-chat/parley/services/socket-gateway/internal/realtime"
)

// LegacyCommand is the argument on which a gateway's binary must call [LegacyMain].
const LegacyCommand = legacy.Command

// openLegacy returns the process for old clients, not started yet.
func (s *Service) openLegacy(id peer.ID) (*legacy.Process, error) {
	return legacy.New(legacy.Config{
		Argv: s.cfg.LegacyArgv,
		Setup: legacy.Setup{
			RedisURL: s.cfg.RedisURL, RedisSharded: s.cfg.RedisSharded,
			PingInterval: s.cfg.PingInterval, PingTimeout: s.cfg.PingTimeout,
			SessionPrefix: id.Prefix(), MaxSockets: s.cfg.MaxSocketsPerVisitor, DrainTimeout: s.cfg.DrainTimeout,
		},
		MaxUnauthorized:           s.cfg.MaxPending,
		MaxUnauthorizedPerAddress: s.cfg.MaxPendingPerAddress,
		Address:                   httpapi.AddressOf(s.cfg.TrustedProxies),
		Tokens:                    s.gateway, Room: realtime.Room, Registerer: s.cfg.Registerer, Logger: s.cfg.Logger,
	})
}

// LegacyMain is the main function of the process that a gateway with SOCKETIO_LEGACY starts for old clients.
// It returns the exit code.
func LegacyMain() int {
	// A terminal signals the whole process group; this process ends only when its gateway closes its standard input.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(os.Getenv("LOG_LEVEL"))) // the gateway has validated it
	child := legacy.Child{
		Stdin: os.Stdin, Stdout: os.Stdout, Logger: ops.NewLogger(os.Stderr, serviceName+"-legacy", level),
		Redis: func(url string) (redis.UniversalClient, error) {
			return redisclient.New(url, redisclient.Timeouts{Dial: redisDialTimeout})
		},
	}
	if err := child.Run(context.Background()); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s-legacy: %v\n", serviceName, err)
		return 1
	}
	return 0
}
