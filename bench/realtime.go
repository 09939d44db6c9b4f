package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

// The measurements of the Socket gateway, each for one contender on one deployment:
//
//	handshake  websocket, visitor token, CONNECT and join of many connections; memory per idle connection
//	paced      one visitor a room, two gateways, from JetStream to the client: cost, latency, highest rate, overload
//	broadcast  many connections in one room
//	readers    what one, two and three gateways use for the same load

// costPace is the load whose cost is measured.
func (b *bench) costPace() pace { return size(b, pace{5000, 30_000}, pace{500, 500}) }

func (b *bench) handshakes(ctx context.Context, d *deployment, c contender) {
	n := size(b, 10_000, 300)
	gateway := d.replicas[0]
	before := gateway.usage().rss
	lost, took := d.join(ctx, n, n)
	pause(ctx, size(b, 5*time.Second, 200*time.Millisecond))
	for _, client := range d.clients {
		if client.lost.Load() { // accepted and then dropped
			lost++
		}
	}
	joined := float64(n - lost)
	after := gateway.usage().rss
	c.add(fmt.Sprintf("memory per idle connection, 0 to %d", n), "KB", float64(after-before)/joined/1024, atMost(0.5))
	c.add(fmt.Sprintf("whole process at %d", n), "MB", float64(after>>20), atMost(0.5))
	c.add("handshakes (websocket, token, CONNECT, join)", "/s", joined/took.Seconds(), atLeast(2))
	c.add(fmt.Sprintf("handshakes lost of %d", n), "", float64(lost), zero())
}

func (b *bench) paced(ctx context.Context, d *deployment, c contender) {
	b.warmUp(ctx, d)
	slow := size(b, pace{2000, 12_000}, pace{200, 200})
	latency := d.deliver(ctx, slow)
	cost := d.deliver(ctx, b.costPace())
	const bound = 250 * time.Millisecond // of p99
	ceiling := searchCeiling(size(b, 2000, 500), func(rate int) bool {
		o := d.deliver(ctx, pace{rate, size(b, 3*rate, rate/2)})
		return o.p99 < bound && o.lost() == 0
	})
	overload := size(b, pace{10_000, 80_000}, pace{1000, 1000})
	over := d.deliver(ctx, overload)
	at := func(p pace) string {
		return fmt.Sprintf("2 gateways, %d rooms, %d replies/s: ", len(d.visitors), p.rate)
	}
	c.add(at(b.costPace())+"CPU per 1,000 deliveries", "s", perThousand(cost.cpu, cost.delivered), atMost(0.5))
	c.add("the same, with Redis and NATS", "s", perThousand(cost.cpu+cost.engines, cost.delivered), atMost(0.7))
	c.add(at(slow)+"p99", "ms", milliseconds(latency.p99), atMost(0.5))
	c.add(fmt.Sprintf("highest rate with p99 under %v", bound), "/s", float64(ceiling), atLeast(2))
	what := fmt.Sprintf("overloaded, %d/s, of %d: ", overload.rate, overload.total)
	c.add(what+"lost", "", float64(over.lost()), zero())
	c.add(what+"doubled", "", float64(over.doubled), zero())
	c.add(what+"out of order", "", float64(over.outOfOrder), zero())
	faults := float64(latency.faults() + cost.faults() + over.faults())
	c.add("all paced loads: lost, doubled, out of order, misdirected", "", faults, zero())
}

// warmUp connects a visitor to each room and delivers some replies.
func (b *bench) warmUp(ctx context.Context, d *deployment) {
	rooms := size(b, 1000, 100)
	d.join(ctx, rooms, rooms)
	d.deliver(ctx, size(b, pace{2000, 2000}, pace{200, 40}))
}

// highestRate is the upper limit of the search for a ceiling.
const highestRate = 64_000

// searchCeiling doubles the rate until it fails twice (a single failure may be caused by other load on the machine),
// and then halves the gap, in ratio, three times: that leaves 9%. It returns 0 if even the first rate fails.
func searchCeiling(rate int, holds func(rate int) bool) int {
	low, high := 0, rate
	again := holds
	for high <= highestRate && (holds(high) || again(high)) {
		low = high
		high *= 2
	}
	if low == 0 || high > highestRate {
		return low
	}
	for range 3 {
		middle := int(math.Sqrt(float64(low) * float64(high)))
		if holds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// broadcast connects many clients to one room and publishes bursts of replies to it, after one for warm-up. The median
// of the bursts counts.
func (b *bench) broadcast(ctx context.Context, d *deployment, c contender) {
	clients := size(b, 5000, 200)
	events := size(b, 40, 10)
	d.join(ctx, clients, 1)
	var rates, costs []float64
	faults := 0
	for burst := range size(b, 3, 1) + 1 {
		o := d.deliver(ctx, pace{0, events})
		if burst > 0 {
			rates = append(rates, o.rate())
			costs = append(costs, perThousand(o.cpu, o.delivered))
			faults += o.faults()
		}
	}
	what := fmt.Sprintf("broadcast of %d events to a room of %d: deliveries", events, clients)
	c.add(what, "/s", median(rates), target{})
	c.add("the same, CPU per 1,000 deliveries", "s", median(costs), target{})
	c.add("the same: lost, doubled, out of order", "", float64(faults), zero())
}

// readers measures the same load for each number of gateways, of which the first is one.
func (b *bench) readers(ctx context.Context, d *deployment, c contender) {
	b.warmUp(ctx, d)
	o := d.deliver(ctx, b.costPace())
	what := func(gateways int, figure string) string {
		return fmt.Sprintf("%d gateways read %d replies/s: %s", gateways, b.costPace().rate, figure)
	}
	const cpu = "CPU of all per 1,000"
	n := len(d.replicas)
	cost := perThousand(o.cpu, o.delivered)
	c.add(what(n, cpu), "s", cost, target{})
	one := c.comparison.figure(what(1, cpu)).value(c.name)
	c.add(what(n, "of one gateway's"), "%", 100*cost/one, target{})
	c.add(what(n, "CPU of NATS and Redis"), "s", perThousand(o.engines, o.delivered), target{})
	c.add(what(n, "p99"), "ms", milliseconds(o.p99), target{})
	c.add(what(n, "lost, doubled, out of order"), "", float64(o.faults()), zero())
}
