package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/tracing"
)

const defaultMaxBody = 1 << 20

// Config configures [New].
type Config struct {
	Service    string // service label of the metrics
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
	Tracer     *tracing.Tracer       // nil: no traces
	MaxBody    int64                 // limit of a body in bytes; zero: 1 MiB
	Memory     *Memory               // bounds bodies and answers in flight; nil: no bound
	Proxies    []netip.Prefix        // networks whose X-Forwarded-For is trusted, see [ClientAddress]
	Challenge  string                // WWW-Authenticate of a 401 (RFC 9110, 11.6.1); empty: Bearer

	SmallBodyTime time.Duration // how long a client may take for a small body; zero: 10 s
}

// New returns an Echo with the conventions of this package: request ids, panic recovery, one access log line and one
// measurement per request, and the same body for every error. A route for GET also serves HEAD.
func New(cfg Config) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Logger.SetOutput(io.Discard) // Echo's errors are answered, and so logged, by this package
	e.IPExtractor = addressBehind(cfg.Proxies)
	warnOfProxies(cfg.Logger, cfg.Proxies)
	e.OnAddRouteHandler = answerHead(e)
	r := newRequests(cfg)
	e.HTTPErrorHandler = func(err error, c echo.Context) { r.answer(c, err) }
	e.Use(r.around)
	return e
}

// answerHead adds a HEAD route for every GET route (RFC 9110, 9.3.2); net/http omits the body.
func answerHead(e *echo.Echo) func(string, echo.Route, echo.HandlerFunc, []echo.MiddlewareFunc) {
	return func(host string, route echo.Route, handler echo.HandlerFunc, middleware []echo.MiddlewareFunc) {
		if route.Method == http.MethodGet && host == "" {
			e.HEAD(route.Path, handler, middleware...)
		}
	}
}
