// Package web is shared by the services that serve HTTP.
package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/service"
)

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
