package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// contender is a gateway under test.
type contender struct {
	name       string
	command    []string
	comparison *comparison
}

// add adds a figure.
func (c contender) add(name, unit string, value float64, t target) {
	f := c.comparison.figure(name)
	f.unit = unit
	f.target = t
	f.values[c.name] = value
}

// compare measures each contender, and each with several numbers of gateways, on servers of their own.
func (b *bench) compare(measure func(context.Context, *deployment, contender), numbers ...int) func(context.Context) {
	known := []contender{
		{"node", []string{"node", "bench/peer/gateway.mjs"}, &b.comparison},
		{"parley", []string{"bin/socket-gateway"}, &b.comparison},
	}
	return func(ctx context.Context) {
		for _, c := range known {
			if !slices.Contains(b.contenders, c.name) {
				continue
			}
			for _, gateways := range numbers {
				b.deployed(func(ctx context.Context, d *deployment) {
					d.startGateways(ctx, c, gateways)
					measure(ctx, d, c)
				})(ctx)
			}
		}
	}
}

// startGateways starts a Redis and gateways, and returns when every gateway is ready.
func (d *deployment) startGateways(ctx context.Context, c contender, gateways int) {
	jwks := d.serveJWKS()
	redis := d.freeAddr()
	_, port, _ := net.SplitHostPort(redis)
	d.redis = d.start(nil, "redis-server",
		"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", d.dir)
	d.redis.drain()
	env := []string{"REDIS_URL=redis://" + redis, "JWKS_URL=" + jwks, "NODE_ENV=production"}
	for range gateways {
		d.replicas = append(d.replicas, d.serve(ctx, env, c.command[0], c.command[1:]...))
	}
}

// serveJWKS serves the public keys of visitors' tokens, and returns the URL.
func (d *deployment) serveJWKS() string {
	jwks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(d.keys.JWKS())
	}))
	d.cleanup(jwks.Close)
	return jwks.URL
}

// cpu returns the CPU time used by the gateways, and by Redis and NATS.
func (d *deployment) cpu() (gateways, engines time.Duration) {
	for _, g := range d.replicas {
		gateways += g.usage().cpu
	}
	return gateways, d.redis.usage().cpu + d.engines.usage().cpu
}

// join connects n clients to rooms in turn, distributed over the gateways. It returns how many handshakes failed, and
// the time for all.
func (d *deployment) join(ctx context.Context, n, rooms int) (lost int, took time.Duration) {
	d.visitors = d.newVisitors(rooms)
	d.clients = make([]*client, n)
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(100) // handshakes in progress
	for i := range n {
		room := i % rooms
		group.Go(func() (err error) {
			addr := d.replicas[i%len(d.replicas)].addr
			d.clients[i], err = connect(ctx, addr, d.visitors[room].token, room)
			return err
		})
	}
	failed := group.Wait()
	took = time.Since(began)
	d.clients = slices.DeleteFunc(d.clients, func(c *client) bool { return c == nil })
	for _, c := range d.clients {
		d.cleanup(c.close)
	}
	if len(d.clients) == 0 {
		d.check(fmt.Errorf("no connection succeeded: %w", failed))
	}
	return n - len(d.clients), took
}

// deliver publishes replies to the rooms and waits for their deliveries.
func (d *deployment) deliver(ctx context.Context, p pace) outcome {
	t := d.newTrial()
	expected := 0
	for _, c := range d.clients {
		c.tally.Store(t.newTally(c.room))
		expected += p.total / len(d.visitors)
		if c.room < p.total%len(d.visitors) {
			expected++
		}
	}
	cpu, engines := d.cpu()
	d.publish(ctx, t, p)
	t.await(ctx, expected)
	d.check(ctx.Err())
	for _, c := range d.clients {
		c.tally.Store(nil)
	}
	o := t.outcome(t.began, time.Now(), expected)
	o.took = o.last.Sub(t.began)
	cpuNow, enginesNow := d.cpu()
	o.cpu = cpuNow - cpu
	o.engines = enginesNow - engines
	return o
}

// patience is how long the generator waits without deliveries before the rest counts as lost: an overloaded gateway is
// slow, not down.
const patience = 4 * time.Second

// await returns when all expected deliveries have arrived, and a moment later for duplicates, or after patience without
// a delivery.
func (t *trial) await(ctx context.Context, expected int) {
	progress, at := int64(-1), time.Now()
	for ctx.Err() == nil {
		n := t.delivered.Load()
		if n != progress {
			progress, at = n, time.Now()
		}
		waited := time.Since(at)
		if waited > patience || n >= int64(expected) && waited > 200*time.Millisecond {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
