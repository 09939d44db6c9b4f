package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/tracing"
)

// requests is the middleware around every request. It is one middleware for all concerns, because each would cost a
// closure, and each context value a copy of the request.
type requests struct {
	series    *seriesTable
	maxBody   int64
	memory    *Memory // nil: no bound
	challenge string
	tracer    *tracing.Tracer // nil: no traces

	smallBodyTime time.Duration
}

func newRequests(cfg Config) *requests {
	r := &requests{
		series:    newSeriesTable(cfg),
		maxBody:   cfg.MaxBody,
		memory:    cfg.Memory,
		challenge: cfg.Challenge,
		tracer:    cfg.Tracer,

		smallBodyTime: cmp.Or(cfg.SmallBodyTime, defaultSmallBodyTime),
	}
	if r.maxBody <= 0 {
		r.maxBody = defaultMaxBody
	}
	if r.challenge == "" {
		r.challenge = "Bearer"
	}
	return r
}

func (r *requests) around(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		started := time.Now()
		scope := r.begin(c)
		defer scope.release()
		if lastParameterHasSlash(c) {
			next = notFound
		}
		err := callRecovered(next, c)
		wasCommitted := c.Response().Committed
		if err != nil {
			r.answer(c, err)
		}
		r.finish(c, started, err)
		if isPanic(err) && wasCommitted {
			panic(http.ErrAbortHandler) // the response is incomplete: abort the connection, so that the client notices
		}
		return nil
	}
}

// lastParameterHasSlash reports whether the router matched several segments with the last parameter of a
// route: /things/:id must match neither /things/1/parts nor /things/1/.
func lastParameterHasSlash(c echo.Context) bool {
	route, path := c.Path(), echo.GetPath(c.Request())
	return route != path && strings.IndexByte(route, ':') >= 0 && strings.IndexByte(route, '*') < 0 &&
		strings.Count(path, "/") > strings.Count(route, "/")
}

func notFound(echo.Context) error { return echo.ErrNotFound }

// begin sets the request's id, trace and context.
func (r *requests) begin(c echo.Context) *requestScope {
	req := c.Request()
	scope := &requestScope{
		Context:       req.Context(),
		maxBody:       r.maxBody,
		smallBodyTime: r.smallBodyTime,
		memory:        r.memory,
	}
	scope.origin.RequestID = requestIDOf(req.Header)
	if tp := req.Header["Traceparent"]; len(tp) == 1 && event.ValidTraceParent(tp[0]) {
		scope.origin.TraceParent = tp[0]
	}
	if r.tracer != nil {
		r.beginSpan(c, scope)
	}
	scope.header[0] = scope.origin.RequestID
	header := c.Response().Header()
	header[echo.HeaderXRequestID] = scope.header[:]
	if req.ContentLength != 0 {
		expectBody(c, r.smallBodyTime) // also if no handler reads it
	}
	if req.ContentLength != 0 && (req.Method == http.MethodGet || req.Method == http.MethodHead) {
		// net/http reads the rest of a body before it answers, unless it closes the connection: a client that announces
		// a body and sends none would hold what the answer holds until the read timeout.
		header.Set(echo.HeaderConnection, "close")
	}
	c.SetRequest(req.WithContext(scope))
	return scope
}

// panicError is the internal error for a handler's panic, with its stack.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func callRecovered(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if abort, ok := v.(error); ok && errors.Is(abort, http.ErrAbortHandler) {
			panic(v) // net/http's way to abort a connection
		}
		err = &panicError{value: v, stack: debug.Stack()}
	}()
	return next(c)
}

// finish measures the request and writes its access log line.
func (r *requests) finish(c echo.Context, started time.Time, err error) {
	now := time.Now()
	response := c.Response()
	s := r.series.get(c.Request().Method, c.Path(), response.Status)
	took := now.Sub(started)
	ctx, level := c.Request().Context(), slog.LevelInfo
	if r.tracer != nil {
		s.observeTraced(took, scopeOf(ctx).span)
		endSpan(ctx, response.Status, err)
	} else {
		s.observe(took)
	}
	if err != nil && response.Status != statusClientGone {
		level = levelOf(problemOf(err).StatusCode)
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	record := slog.NewRecord(now, level, "request", 0)
	record.AddAttrs(
		slog.Int64("durationUs", took.Microseconds()),
		slog.Int64("bytes", response.Size),
	)
	if err != nil {
		record.AddAttrs(errorAttrs(err)...)
	}
	_ = s.log.Handle(ctx, record) // a logging failure cannot be reported
}

// levelOf returns the log level of a status: client errors are as normal as success.
func levelOf(status int) slog.Level {
	switch {
	case status == http.StatusServiceUnavailable:
		return slog.LevelWarn
	case status >= http.StatusInternalServerError:
		return slog.LevelError
	}
	return slog.LevelInfo
}

func isPanic(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}

// errorAttrs describes an error. It includes the cause of internal errors only: for a client error the code is enough,
// and the text could contain caller input.
func errorAttrs(err error) []slog.Attr {
	problem := problemOf(err)
	attrs := []slog.Attr{slog.String("code", problem.Code)}
	if problem.StatusCode >= http.StatusInternalServerError {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	return attrs
}
