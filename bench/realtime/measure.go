package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

func (b *bench) handshakes(ctx context.Context, c contender) error {
	d, err := b.deploy(ctx, c, 1)
	defer d.close()
	if err != nil {
		return err
	}
	before := d.rss()
	lost, took, err := d.join(ctx, b.idle, true)
	if err != nil {
		return err
	}
	time.Sleep(b.settle)
	for _, client := range d.clients {
		if client.lost.Load() { // accepted and then dropped
			lost++
		}
	}
	joined := float64(b.idle - lost)
	after := d.rss()
	memory := fmt.Sprintf("memory per idle connection, 0 to %d", b.idle)
	b.report.add(c.name, memory, "KB", float64(after-before)/joined/1024, atMost(0.5))
	b.report.add(c.name, fmt.Sprintf("whole process at %d", b.idle), "MB", float64(after>>20), atMost(0.5))
	b.report.add(c.name, "handshakes (websocket, token, CONNECT, join)", "/s", joined/took.Seconds(), atLeast(2))
	b.report.add(c.name, fmt.Sprintf("handshakes lost of %d", b.idle), "", float64(lost), zero())
	return nil
}

func (b *bench) paced(ctx context.Context, c contender) error {
	d, err := b.deployPaced(ctx, c, 2)
	defer d.close()
	if err != nil {
		return err
	}
	latency, err := d.pace(ctx, b.latency)
	if err != nil {
		return err
	}
	cost, err := d.pace(ctx, b.cost)
	if err != nil {
		return err
	}
	ceiling, err := searchCeiling(b.ceiling.rate, func(rate int) (bool, error) {
		o, err := d.pace(ctx, pace{rate, b.ceiling.time})
		return o.p99 < b.bound && o.lost() == 0, err
	})
	if err != nil {
		return err
	}
	over, err := d.pace(ctx, b.over)
	if err != nil {
		return err
	}
	at := func(p pace) string { return fmt.Sprintf("2 gateways, %d rooms, %d replies/s: ", b.rooms, p.rate) }
	gateways := rig.PerThousand(cost.cpu, cost.delivered)
	all := rig.PerThousand(cost.cpu+cost.engines, cost.delivered)
	b.report.add(c.name, at(b.cost)+"CPU per 1,000 deliveries", "s", gateways, atMost(0.5))
	b.report.add(c.name, "the same, with Redis and NATS", "s", all, atMost(0.7))
	b.report.add(c.name, at(b.latency)+"p99", "ms", latency.p99.Seconds()*1000, atMost(0.5))
	b.report.add(c.name, fmt.Sprintf("highest rate with p99 under %v", b.bound), "/s", float64(ceiling), atLeast(2))
	overload := fmt.Sprintf("overloaded, %d/s, of %d: ", b.over.rate, b.over.total())
	b.report.add(c.name, overload+"lost", "", float64(over.lost()), zero())
	b.report.add(c.name, overload+"doubled", "", float64(over.doubled), zero())
	b.report.add(c.name, overload+"out of order", "", float64(over.outOfOrder), zero())
	faults := float64(latency.faults() + cost.faults() + over.faults())
	b.report.add(c.name, "all paced loads: lost, doubled, out of order, misdirected", "", faults, zero())
	return nil
}

// deployPaced starts gateways with a visitor in each room, and warms them up.
func (b *bench) deployPaced(ctx context.Context, c contender, gateways int) (*deployment, error) {
	d, err := b.deploy(ctx, c, gateways)
	if err != nil {
		return d, err
	}
	if _, _, err := d.join(ctx, b.rooms, true); err != nil {
		return d, err
	}
	_, err = d.pace(ctx, pace{b.latency.rate, b.warm})
	return d, err
}

func (d *deployment) pace(ctx context.Context, p pace) (outcome, error) {
	return d.replies(ctx, p.rate, p.total())
}

// highestRate is the upper limit of the search for a ceiling.
const highestRate = 64_000

// searchCeiling doubles the rate until it fails twice (a single failure may be caused by other load on the machine),
// and then halves the gap, in ratio, three times: that leaves 9%. It returns 0 if even the first rate fails.
func searchCeiling(rate int, holds func(rate int) (bool, error)) (low int, err error) {
	ok, high := true, rate
	for ok && high <= highestRate {
		if ok, err = holds(high); err == nil && !ok {
			ok, err = holds(high)
		}
		if err != nil {
			return 0, err
		}
		if ok {
			low, high = high, 2*high
		}
	}
	if ok || low == 0 {
		return low, nil
	}
	for range 3 {
		middle := int(math.Sqrt(float64(low) * float64(high)))
		if ok, err = holds(middle); err != nil {
			return 0, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// broadcast connects many clients to one room and publishes bursts of replies to it, after one for warm-up.
func (b *bench) broadcast(ctx context.Context, c contender) error {
	d, err := b.deploy(ctx, c, 1)
	defer d.close()
	if err != nil {
		return err
	}
	if _, _, err := d.join(ctx, b.clients, false); err != nil {
		return err
	}
	var rates, costs []float64
	faults := 0
	for i := range b.bursts + 1 {
		o, err := d.replies(ctx, 0, b.events)
		if err != nil {
			return err
		}
		if i > 0 {
			rates = append(rates, o.rate())
			costs = append(costs, rig.PerThousand(o.cpu, o.delivered))
			faults += o.faults()
		}
	}
	what := fmt.Sprintf("broadcast of %d events to a room of %d: ", b.events, b.clients)
	b.report.add(c.name, what+"deliveries", "/s", rig.Median(rates), target{})
	b.report.add(c.name, "the same, CPU per 1,000 deliveries", "s", rig.Median(costs), target{})
	b.report.add(c.name, "the same: lost, doubled, out of order", "", float64(faults), zero())
	return nil
}

// readers measures the same load with 1, 2 and 3 gateways.
func (b *bench) readers(ctx context.Context, c contender) error {
	var first float64
	for gateways := 1; gateways <= 3; gateways++ {
		o, err := b.read(ctx, c, gateways)
		if err != nil {
			return err
		}
		cost := rig.PerThousand(o.cpu, o.delivered)
		if gateways == 1 {
			first = cost
		}
		what := fmt.Sprintf("%d gateways read %d replies/s: ", gateways, b.cost.rate)
		b.report.add(c.name, what+"CPU of all per 1,000", "s", cost, target{})
		b.report.add(c.name, what+"of one gateway's", "%", 100*cost/first, target{})
		b.report.add(c.name, what+"CPU of NATS and Redis", "s", rig.PerThousand(o.engines, o.delivered), target{})
		b.report.add(c.name, what+"p99", "ms", o.p99.Seconds()*1000, target{})
		b.report.add(c.name, what+"lost, doubled, out of order", "", float64(o.faults()), zero())
	}
	return nil
}

func (b *bench) read(ctx context.Context, c contender, gateways int) (outcome, error) {
	d, err := b.deployPaced(ctx, c, gateways)
	defer d.close()
	if err != nil {
		return outcome{}, err
	}
	return d.pace(ctx, b.cost)
}
