// Command panel serves the panel.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/tracing/otlp"
	"github.com/parley-chat/parley/services/panel"
)

func main() {
	ops.CollectSeldom()
	os.Exit(ops.Main("panel", run))
}

func run(ctx context.Context, log *slog.Logger) error {
	cfg, err := config.Load[panel.Config]()
	if err != nil {
		return err
	}
	tracer, stop, err := otlp.Open(cfg.Tracing, "panel", ops.ReadBuild().Version, log)
	if err != nil {
		return err
	}
	defer stop()
	cfg.Logger, cfg.Registerer, cfg.Tracer = log, prometheus.DefaultRegisterer, tracer
	service, err := panel.New(cfg)
	if err != nil {
		return err
	}
	return service.Run(ctx)
}
