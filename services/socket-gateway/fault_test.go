package socketgateway_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/embedded"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
)

// The fault tests publish to a clients of official clients while something breaks, and count. They are short, unless the
// environment says PARLEY_FAULTS=long.

// lasting returns how long an outage lasts.
func lasting(short, long time.Duration) time.Duration {
	if os.Getenv("PARLEY_FAULTS") == "long" {
		return long
	}
	return short
}

const clientCount = 12

// outage lets time pass while something is away: there is no event to wait for.
func outage(d time.Duration) { time.Sleep(d) }

// The network between the visitors and the gateways breaks, and they come back to whichever gateway.
func TestFaultNetworkDrops(t *testing.T) {
	t.Parallel()
	for _, transports := range []string{"websocket", "polling"} {
		t.Run(transports, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			registries := []*prometheus.Registry{prometheus.NewRegistry(), prometheus.NewRegistry()}
			proxy := newProxy(t)
			for _, r := range registries {
				proxy.open(w.start(func(c *socketgateway.Config) { c.Registerer = r }).url)
			}
			clients := newClients(t, w, proxy.url, transports, clientCount)
			clients.publish()
			clients.awaitEach(3)
			proxy.cut()
			outage(lasting(time.Second, 30*time.Second))
			proxy.repair()
			clients.awaitRecovered(clientCount)
			clients.finish()
			hits := 0.0
			for _, r := range registries {
				hits += gather(t, r)["parley_gateway_recoveries_total hit"]
			}
			if clients.missed > 0 || hits < clientCount {
				t.Errorf("got %v recovered and %d that were not, want all %d", hits, clients.missed, clientCount)
			}
		})
	}
}

// A client that has a session but has had no event yet gets its first ones all the same.
func TestFaultNetworkDropsBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy := newProxy(t)
	proxy.open(w.start().url)
	clients := newClients(t, w, proxy.url, "websocket", clientCount)
	proxy.cut()
	clients.awaitGone()
	clients.publish()
	clients.awaitSent(clientCount * 5)
	proxy.repair()
	clients.awaitRecovered(clientCount)
	clients.finish()
}

// The gateway that has all sockets, and the replies, is killed: the clients go to another one.
func TestFaultGatewayKilled(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	first := w.startChild()
	proxy := newProxy(t)
	proxy.open(first.url)
	clients := newClients(t, w.world, proxy.url, "websocket", clientCount)
	clients.publish()
	clients.awaitEach(3)
	second := w.startChild()
	proxy.open(second.url)
	first.kill()
	proxy.close(first.url)
	clients.awaitRecovered(clientCount)
	clients.finish()
}

// All gateways are replaced, one after the other, under load.
func TestFaultRollingRestart(t *testing.T) {
	t.Parallel()
	for _, transports := range []string{"websocket", "polling", "polling,websocket"} {
		t.Run(transports, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			proxy := newProxy(t)
			var running []*child
			for range 3 {
				p := w.startChild()
				proxy.open(p.url)
				running = append(running, p)
			}
			clients := newClients(t, w.world, proxy.url, transports, clientCount)
			clients.publish()
			for _, old := range running {
				clients.awaitEach(3)
				p := w.startChild()
				proxy.open(p.url)
				proxy.close(old.url)
				old.terminate()
			}
			clients.finish()
			if clients.missed > 0 {
				t.Errorf("got %d connections that were not recovered, want none", clients.missed)
			}
		})
	}
}

// Redis stops and comes back: nobody hears anything meanwhile, and everything after.
func TestFaultRedisRestart(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	proxy := newProxy(t)
	var gateways []*gateway
	for range 2 {
		g := w.start()
		gateways = append(gateways, g)
		proxy.open(g.url)
	}
	clients := newClients(t, w.world, proxy.url, "websocket", clientCount)
	clients.publish()
	for range 2 {
		clients.awaitEach(3)
		w.redis.stop()
		outage(lasting(time.Second, 20*time.Second))
		w.redis.start()
		for _, g := range gateways {
			opstest.AwaitUp(w.t, g.ops)
		}
	}
	clients.finish()
}

// Only one gateway loses Redis, while the others go on: it replays what it has missed.
func TestFaultGatewayLosesRedis(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	proxy := newProxy(t) // to Redis
	proxy.open("http://" + w.redis.addr)
	near := w.start()
	opstest.AwaitUp(w.t, near.ops)
	far := w.start(func(c *socketgateway.Config) { c.RedisURL = "redis://" + proxy.addr() })
	clients := newClients(t, w.world, far.url, "websocket", clientCount)
	clients.publish()
	clients.awaitEach(3)
	proxy.cut()
	outage(lasting(time.Second, 30*time.Second))
	proxy.repair()
	opstest.AwaitUp(w.t, far.ops)
	clients.finish()
	if clients.connects != clientCount {
		t.Errorf("got %d connections, want that the %d sockets stayed", clients.connects, clientCount)
	}
}

// NATS stops and comes back: sockets stay, and get what is published after.
func TestFaultNATSRestart(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	proxy := newProxy(t)
	for range 2 {
		proxy.open(w.start().url)
	}
	clients := newClients(t, w.world, proxy.url, "websocket", clientCount)
	clients.publish()
	for range 2 {
		clients.awaitEach(3)
		w.nats.Stop()
		proxy.shake() // clients that are reconnecting must not lose replies either
		outage(lasting(time.Second, 10*time.Second))
		w.nats = startNATS(t, w.natsAddr, w.natsDir)
	}
	clients.finish()
}

// The gateway that takes the replies dies, or sleeps so long that another one takes over and everything is
// delivered again, with one, two and three gateways.
func TestFaultOrderAndOnce(t *testing.T) {
	t.Parallel()
	for gateways := 1; gateways <= 3; gateways++ {
		t.Run(fmt.Sprintf("%d gateways", gateways), func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			proxy := newProxy(t)
			var running []*child
			for range gateways {
				p := w.startChild()
				proxy.open(p.url)
				running = append(running, p)
			}
			clients := newClients(t, w.world, proxy.url, "websocket", clientCount)
			clients.publish()
			for _, p := range running {
				clients.awaitEach(3)
				p.signal(syscall.SIGSTOP)
				// longer than the other gateways wait before they take over its partitions
				outage(lasting(3*time.Second, 8*time.Second))
				p.signal(syscall.SIGCONT)
			}
			for _, p := range running {
				clients.awaitEach(3)
				proxy.close(p.url)
				p.kill()
				fresh := w.startChild()
				proxy.open(fresh.url)
			}
			clients.finish()
		})
	}
}

// faultWorld is a world whose engines can be stopped and started again.
type faultWorld struct {
	*world
	redis    *realRedis
	nats     *embedded.NATS
	natsAddr string
	natsDir  string
}

func newFaultWorld(t *testing.T) *faultWorld {
	t.Helper()
	f := &faultWorld{redis: newRealRedis(t), natsDir: t.TempDir()}
	f.redis.start()
	f.natsAddr = nettest.Addr(t)
	f.nats = startNATS(t, f.natsAddr, f.natsDir)
	t.Cleanup(func() { f.nats.Stop() })
	bustest.DeclareSmall(t, f.nats.URL())
	f.world = newWorldWith(t, "nats://"+f.natsAddr, f.redis.url())
	return f
}

func startNATS(t *testing.T, addr, dir string) *embedded.NATS {
	t.Helper()
	n, err := embedded.StartNATS(embedded.NATSConfig{Addr: addr, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
