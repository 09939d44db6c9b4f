package service

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/tracing/otlp"
)

// Main runs a service as a process, configured by environment variables, and returns its exit code; see [ops.Main].
//
//	func main() { os.Exit(service.Main("client-api", clientapi.New)) }
func Main[C any, P interface {
	*C
	base() *Base
}, S interface{ Run(context.Context) error }](name string, build func(C) (S, error)) int {
	return ops.Main(name, func(ctx context.Context, log *slog.Logger) error {
		cfg, err := config.Load[C]()
		if err != nil {
			return err
		}
		b := P(&cfg).base()
		tracer, stop, err := otlp.Open(name, ops.ReadBuild().Version, log)
		if err != nil {
			return err
		}
		defer stop()
		b.Logger, b.Registerer, b.Tracer = log, prometheus.DefaultRegisterer, tracer
		s, err := build(cfg)
		if err != nil {
			return err
		}
		return s.Run(ctx)
	})
}
