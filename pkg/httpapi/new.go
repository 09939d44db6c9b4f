package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/tracing"
)

const defaultMaxBody = 1 << 20

// Config is what [New] needs.
type Config struct {
	Service    string // label of the metrics
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
	Tracer     *tracing.Tracer       // nil: no traces
	MaxBody    int64                 // bytes of a body that [Decode] reads; zero: 1 MiB
	Proxies    []netip.Prefix        // whose X-Forwarded-For is believed, see [ClientAddress]
	Challenge  string                // WWW-Authenticate of a 401 (RFC 9110, 11.6.1); empty: Bearer
}

// New returns an Echo with the conventions of this package: request ids, recovery, one access log line and one measurement a
// request, and the same body for every error. A route for GET answers HEAD too.
func New(cfg Config) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Logger.SetOutput(io.Discard) // what Echo would log is answered, and so logged, by us
	e.IPExtractor = addressBehind(cfg.Proxies)
	e.OnAddRouteHandler = answerHead(e)
	r := newRequests(cfg)
	e.HTTPErrorHandler = func(err error, c echo.Context) { r.answer(c, err) }
	e.Use(r.around)
	return e
}

// answerHead adds the route for HEAD that belongs to every route for GET (RFC 9110, 9.3.2); net/http leaves the body out.
func answerHead(e *echo.Echo) func(string, echo.Route, echo.HandlerFunc, []echo.MiddlewareFunc) {
	return func(host string, route echo.Route, handler echo.HandlerFunc, middleware []echo.MiddlewareFunc) {
		if route.Method == http.MethodGet && host == "" {
			e.HEAD(route.Path, handler, middleware...)
		}
	}
}
