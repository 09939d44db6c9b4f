// Package web is shared by the services that serve HTTP.
package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/service"
)

// Limits opens the Redis in which replicas share their rate limits. Without a URL it returns nil, and each replica
// counts by itself, as during an outage of Redis; it is therefore optional for readiness.
func Limits(p *service.Process, redisURL string) (*ratelimit.Redis, error) {
	if redisURL == "" {
		return nil, nil
	}
	r, err := ratelimit.OpenRedis(redisURL, p.Logger())
	if err != nil {
		return nil, err
	}
	p.OnClose(r.Close)
	p.Check(ops.Check{Name: "redis", Check: r.Ready, Optional: true})
	return r, nil
}

// Listen returns ln, or else a listener on addr (HTTP_ADDR); nil if there is neither, because another server serves the
// handler.
func Listen(p *service.Process, ln net.Listener, addr string) (net.Listener, error) {
	if ln == nil && addr == "" {
		return nil, nil
	}
	if ln == nil {
		var err error
		if ln, err = net.Listen("tcp", addr); err != nil {
			return nil, fmt.Errorf("HTTP_ADDR: %w", err)
		}
	}
	p.Logger().Info("serving", "addr", ln.Addr().String())
	return ln, nil
}

// Serve serves handler on the listener of [Listen] until ctx is done; requests in flight then have grace to finish.
func Serve(
	ctx context.Context,
	p *service.Process,
	ln net.Listener,
	addr string,
	handler http.Handler,
	grace time.Duration,
) error {
	ln, err := Listen(p, ln, addr)
	if err != nil {
		return err
	}
	if ln == nil {
		<-ctx.Done()
		return nil
	}
	defer p.Logger().Info("stopped")
	return httpapi.Serve(ctx, ln, handler, p.Logger(), grace)
}
