// Command processor runs Parley's reference processing layer.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/tracing/otlp"
	"github.com/parley-chat/parley/services/processor"
)

func main() { os.Exit(ops.Main("processor", run)) }

func run(ctx context.Context, log *slog.Logger) error {
	cfg, err := config.Load[processor.Config]()
	if err != nil {
		return err
	}
	tracer, stop, err := otlp.Open(cfg.Tracing, "processor", ops.ReadBuild().Version, log)
	if err != nil {
		return err
	}
	defer stop()
	cfg.Logger, cfg.Registerer, cfg.Tracer = log, prometheus.DefaultRegisterer, tracer
	service, err := processor.New(cfg)
	if err != nil {
		return err
	}
	return service.Run(ctx)
}
