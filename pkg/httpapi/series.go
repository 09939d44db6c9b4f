package httpapi

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/tracing"
)

// series is shared by all requests of one method, route and status: the metric with resolved labels and the log with
// encoded attributes.
type series struct {
	seconds prometheus.Observer
	log     slog.Handler
}

func (s *series) observe(d time.Duration) {
	if s.seconds != nil {
		s.seconds.Observe(d.Seconds())
	}
}

// observeTraced records the request's trace as exemplar if it is sampled, which links a slow bucket of a dashboard to
// one of its requests.
func (s *series) observeTraced(d time.Duration, span *tracing.Span) {
	exemplars, ok := s.seconds.(prometheus.ExemplarObserver)
	if traceID := span.SampledTraceID(); ok && traceID != "" {
		exemplars.ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": traceID})
		return
	}
	s.observe(d)
}

type seriesKey struct {
	method, route string
	status        int
}

// seriesTable finds series without a lock: the map is immutable and replaced by a copy with one more entry. It stays
// small, because routes, methods (see methodLabel) and statuses are bounded, whatever clients send.
type seriesTable struct {
	byKey   atomic.Pointer[map[seriesKey]*series]
	adding  sync.Mutex
	seconds *prometheus.HistogramVec // nil: no metrics
	log     slog.Handler
}

func newSeriesTable(cfg Config) *seriesTable {
	t := &seriesTable{log: slog.DiscardHandler}
	if cfg.Logger != nil {
		t.log = tracing.Handler(cfg.Logger.Handler())
	}
	if cfg.Registerer != nil {
		t.seconds = registerSeconds(cfg.Registerer, cfg.Service)
	}
	t.byKey.Store(&map[seriesKey]*series{})
	return t
}

func registerSeconds(r prometheus.Registerer, service string) *prometheus.HistogramVec {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:        "parley_http_request_seconds",
		Help:        "Time from a request's header to the end of its response.",
		ConstLabels: prometheus.Labels{"service": service},
		Buckets:     []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "route", "status"})
	if err := r.Register(seconds); err != nil {
		// Two servers of one service in one process share the metric; any other conflict leaves the metric empty.
		if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
			if vec, ok := known.ExistingCollector.(*prometheus.HistogramVec); ok {
				return vec
			}
		}
	}
	return seconds
}

func (t *seriesTable) get(method, route string, status int) *series {
	key := seriesKey{methodLabel(method), routeLabel(route), status}
	if s, ok := (*t.byKey.Load())[key]; ok {
		return s
	}
	return t.add(key)
}

func (t *seriesTable) add(key seriesKey) *series {
	t.adding.Lock()
	defer t.adding.Unlock()
	if s, ok := (*t.byKey.Load())[key]; ok {
		return s
	}
	s := &series{log: t.log.WithAttrs([]slog.Attr{
		slog.String("method", key.method),
		slog.String("route", key.route),
		slog.Int("status", key.status),
	})}
	if t.seconds != nil {
		s.seconds = t.seconds.WithLabelValues(key.method, key.route, strconv.Itoa(key.status))
	}
	grown := maps.Clone(*t.byKey.Load())
	grown[key] = s
	t.byKey.Store(&grown)
	return s
}

// methodLabel maps unknown methods to one label value.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet,
		http.MethodHead,
		http.MethodPost,
		http.MethodPut,
		http.MethodPatch,
		http.MethodDelete,
		http.MethodOptions:
		return method
	}
	return "OTHER"
}

func routeLabel(route string) string {
	if route == "" {
		return "unmatched"
	}
	return route
}
