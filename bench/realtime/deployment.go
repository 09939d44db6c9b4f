package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/credential"
)

// deployment is one contender's gateways with their own servers, and the visitors' connections to them.
type deployment struct {
	rig      *rig.Rig
	redis    *rig.Process
	jwks     *httptest.Server
	keys     *credential.KeySet
	gateways []*rig.Service
	bus      *bus.Bus
	clients  []*client
	visitors []visitor // visitor i has room i
	trials   int
}

// visitor is a visitor who can connect to a room.
type visitor struct{ id, chatID, token string }

// deploy starts all processes and returns when every gateway is ready. The caller closes it, also after an error.
func (b *bench) deploy(ctx context.Context, c contender, gateways int) (d *deployment, err error) {
	d = &deployment{}
	if d.rig, err = rig.Open(b.bin); err != nil {
		return d, err
	}
	if d.bus, err = d.rig.OpenBus(ctx); err != nil {
		return d, err
	}
	if d.keys, err = d.rig.VisitorKeys(); err != nil {
		return d, err
	}
	jwks := d.keys.JWKS()
	d.jwks = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jwks)
	}))
	redis := rig.FreeAddr()
	_, port, _ := net.SplitHostPort(redis)
	d.redis, err = d.rig.Start("redis", nil, "redis-server",
		"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", d.rig.Path("."))
	if err != nil {
		return d, err
	}
	env := []string{"REDIS_URL=redis://" + redis, "JWKS_URL=" + d.jwks.URL, "NODE_ENV=production"}
	for range gateways {
		var g *rig.Service
		if len(c.args) > 0 {
			g, err = d.rig.Serve(ctx, c.name, env, c.args[0], c.args[1:]...)
		} else {
			g, err = d.rig.Service(ctx, "socket-gateway", env...)
		}
		if err != nil {
			return d, fmt.Errorf("starting a gateway of %s: %w", c.name, err)
		}
		d.gateways = append(d.gateways, g)
	}
	return d, nil
}

func (d *deployment) close() {
	for _, c := range d.clients {
		c.close()
	}
	if d.bus != nil {
		d.bus.Close()
	}
	if d.rig != nil {
		d.rig.Close()
	}
	if d.jwks != nil {
		d.jwks.Close()
	}
}

// cpu returns the CPU time used by the gateways, and by Redis and NATS.
func (d *deployment) cpu() (gateways, engines time.Duration) {
	for _, g := range d.gateways {
		gateways += g.CPU()
	}
	return gateways, d.redis.CPU() + d.rig.Engines.CPU()
}

// rss returns the current memory of the gateways.
func (d *deployment) rss() (total int64) {
	for _, g := range d.gateways {
		total += g.RSS()
	}
	return total
}

// concurrentHandshakes is the maximum number of handshakes in progress.
const concurrentHandshakes = 100

// join connects n clients, each to its own room or all to the first, distributed over the gateways. It returns how
// many handshakes failed, and the time for all.
func (d *deployment) join(ctx context.Context, n int, own bool) (lost int, took time.Duration, err error) {
	rooms := 1
	if own {
		rooms = n
	}
	if err := d.makeVisitors(rooms); err != nil {
		return 0, 0, err
	}
	connected := make([]*client, n)
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(concurrentHandshakes)
	for i := range n {
		group.Go(func() error {
			c, err := connect(ctx, d.gateways[i%len(d.gateways)].Addr, d.visitors[i%rooms].token)
			if err == nil {
				c.room = i % rooms
				connected[i] = c
			}
			return err
		})
	}
	failed := group.Wait()
	took = time.Since(began)
	for _, c := range connected {
		if c != nil {
			d.clients = append(d.clients, c)
		}
	}
	if len(d.clients) == 0 {
		return n, took, fmt.Errorf("no connection succeeded: %w", failed)
	}
	return n - len(d.clients), took, nil
}

func (d *deployment) makeVisitors(n int) error {
	d.visitors = make([]visitor, n)
	now := time.Now()
	for i := range d.visitors {
		v := visitor{id: uuid.NewString(), chatID: uuid.NewString()}
		token, err := d.keys.Sign(credential.VisitorClaims{
			ChatUserID: v.id, AppID: d.rig.Demo.AppID, CompanyID: d.rig.Demo.CompanyID, TokenID: uuid.NewString(),
			IssuedAt: now, ExpiresAt: now.Add(24 * time.Hour),
		})
		if err != nil {
			return err
		}
		v.token = token
		d.visitors[i] = v
	}
	return nil
}
