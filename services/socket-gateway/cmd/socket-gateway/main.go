// Command socket-gateway runs one of Parley's socket gateways.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9/logging"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/tracing/otlp"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
)

func main() {
	logging.Disable() // go-redis writes a line for each attempt, past our log, which tells once
	if len(os.Args) == 2 && os.Args[1] == socketgateway.LegacyCommand {
		os.Exit(socketgateway.LegacyMain())
	}
	os.Exit(ops.Main("socket-gateway", run))
}

func run(ctx context.Context, log *slog.Logger) error {
	cfg, err := config.Load[socketgateway.Config]()
	if err != nil {
		return err
	}
	tracer, stop, err := otlp.Open(cfg.Tracing, "socket-gateway", ops.ReadBuild().Version, log)
	if err != nil {
		return err
	}
	defer stop()
	cfg.Logger, cfg.Registerer, cfg.Tracer = log, prometheus.DefaultRegisterer, tracer
	service, err := socketgateway.New(cfg)
	if err != nil {
		return err
	}
	return service.Run(ctx)
}
