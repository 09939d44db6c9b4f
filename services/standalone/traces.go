package main

import (
	"log/slog"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/pkg/tracing/otlp"
)

// traces has a tracer for each of the services, under whose names a trace shows what each did.
type traces struct {
	tracers map[string]*tracing.Tracer
	stops   []func()
}

func openTraces(cfg config.Tracing, log *slog.Logger) (*traces, error) {
	t := &traces{tracers: make(map[string]*tracing.Tracer)}
	for _, service := range []string{"client-api", "widget-api", "socket-gateway", "processor", "panel"} {
		tracer, stop, err := otlp.Open(cfg, service, ops.ReadBuild().Version, log)
		if err != nil {
			t.stop()
			return nil, err
		}
		t.tracers[service], t.stops = tracer, append(t.stops, stop)
	}
	return t, nil
}

// of returns nil where there are no traces.
func (t *traces) of(service string) *tracing.Tracer { return t.tracers[service] }

// stop sends what is left. All services have stopped.
func (t *traces) stop() {
	for _, stop := range t.stops {
		stop()
	}
}
