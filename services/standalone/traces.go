package main

import (
	"log/slog"

	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/pkg/tracing/otlp"
)

// traces has a tracer per service, so that a trace names the service of each span.
type traces struct {
	tracers map[string]*tracing.Tracer
	stops   []func()
}

func openTraces(log *slog.Logger) (*traces, error) {
	t := &traces{tracers: make(map[string]*tracing.Tracer)}
	for _, service := range []string{"client-api", "widget-api", "socket-gateway", "processor", "panel"} {
		tracer, stop, err := otlp.Open(service, ops.ReadBuild().Version, log)
		if err != nil {
			t.stop()
			return nil, err
		}
		t.tracers[service], t.stops = tracer, append(t.stops, stop)
	}
	return t, nil
}

// of returns nil without tracing.
func (t *traces) of(service string) *tracing.Tracer { return t.tracers[service] }

// stop exports the remaining spans. All services must have stopped.
func (t *traces) stop() {
	for _, stop := range t.stops {
		stop()
	}
}
