package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second // for a body; a handler for uploads may extend it
	writeTimeout      = 90 * time.Second // more than a long poll
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10

	// lameDuck is how long connections stay open after the stop: busy ones get a response with Connection: close
	// instead of being closed while the next request is in transit.
	lameDuck = 250 * time.Millisecond
)

// Serve serves h on ln until ctx is done. Then it stops accepting, finishes requests in flight and returns nil;
// requests that run longer than grace are aborted and logged. The end of ctx does not cancel requests. Serve returns an
// error if ln fails. It owns ln and closes it; hijacked connections belong to their handlers.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, log *slog.Logger, grace time.Duration) error {
	var stopping atomic.Bool
	conns := newConnCount()
	server := &http.Server{
		Handler:           closeOnStop(h, &stopping),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnState:         conns.track,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // mostly caused by clients
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case err := <-served:
		_ = server.Close()
		return fmt.Errorf("serving on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	_ = ln.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		log.Warn("server failed during shutdown", "error", err.Error())
	}
	stopping.Store(true) // after the listener is closed, so that a closed client does not reconnect here
	conns.awaitNone(min(lameDuck, grace/2))
	shutdown(ctx, server, log, grace)
	return nil
}

func shutdown(ctx context.Context, server *http.Server, log *slog.Logger, grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		log.Warn("requests aborted at shutdown", "grace", grace.String(), "error", err.Error())
		_ = server.Close()
	}
}

// closeOnStop sets Connection: close on every response after the stop.
func closeOnStop(h http.Handler, stopping *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopping.Load() && r.Header.Get("Upgrade") == "" {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// connCount counts a server's open connections.
type connCount struct {
	open atomic.Int64
	none chan struct{} // receives a value whenever the last connection closes
}

func newConnCount() *connCount { return &connCount{none: make(chan struct{}, 1)} }

func (c *connCount) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		if c.open.Add(-1) == 0 {
			select {
			case c.none <- struct{}{}:
			default:
			}
		}
	}
}

func (c *connCount) awaitNone(atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for c.open.Load() > 0 {
		select {
		case <-c.none:
		case <-timer.C:
			return
		}
	}
}
