package bus

// The gauges of consumer groups that need a request to the server.

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// gaugeInterval is the interval of gauges that need a server request.
const gaugeInterval = 5 * time.Second

// gauge calls measure every gaugeInterval until ctx ends. After an error it retries with a growing delay, at
// most gaugeInterval.
func gauge(ctx context.Context, measure func(context.Context) error) {
	const minWait = 100 * time.Millisecond
	timer, wait := time.NewTimer(0), minWait
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		request, cancel := context.WithTimeout(ctx, gaugeInterval)
		if measure(request) == nil {
			timer.Reset(gaugeInterval)
			wait = minWait
		} else {
			timer.Reset(wait)
			wait = min(2*wait, gaugeInterval)
		}
		cancel()
	}
}

// gauge sets the metrics of the deliveries in this process. oldest is the time of the oldest one; zero: none.
func (g *group) gauge(now, oldest time.Time) {
	running := g.queue.runningCount()
	g.bus.metrics.inFlight.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(float64(running))
	g.bus.metrics.waiting.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(float64(max(0, int(g.held.Load())-running)))
	age := 0.0
	if !oldest.IsZero() {
		age = max(0, now.Sub(oldest).Seconds())
	}
	g.bus.metrics.oldest.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(age)
}

// startGauges measures the consumer's lag until stop is called. stop returns when the measurement has ended.
func (g *group) startGauges() (stop func()) {
	if g.bus.cfg.Registerer == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(g.handlerCtx)
	var measuring sync.WaitGroup
	measuring.Go(func() { gauge(ctx, g.gaugeLag) })
	return func() {
		cancel()
		measuring.Wait()
	}
}

// gaugeLag measures the lag of all partitions, so that every process reports the same value.
func (g *group) gaugeLag(ctx context.Context) error {
	if g.cfg.Order != ByPartition {
		consumer, err := g.bus.js.Consumer(ctx, g.cfg.Stream, g.cfg.Durable)
		if err != nil {
			return err
		}
		g.setLag(outstanding(consumer.CachedInfo()))
		return nil
	}
	all, err := g.bus.Group(ctx, g.cfg.Stream, g.cfg.Durable)
	if err != nil {
		return err
	}
	total := all.Total()
	g.setLag(float64(total.Pending) + float64(total.AckPending))
	return nil
}

func (g *group) setLag(lag float64) {
	g.bus.metrics.lag.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(lag)
}

// outstanding returns the number of messages that are pending or not acknowledged.
func outstanding(info *jetstream.ConsumerInfo) float64 {
	return float64(info.NumPending) + float64(info.NumAckPending)
}
