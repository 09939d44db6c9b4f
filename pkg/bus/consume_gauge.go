package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// gaugeEvery is how old a gauge is at most that the server has to be asked for.
const gaugeEvery = 5 * time.Second

// gauge calls ask again and again until ctx ends; what fails is asked again soon, and then less and less.
func gauge(ctx context.Context, ask func(context.Context) error) {
	const soon = 100 * time.Millisecond
	timer, wait := time.NewTimer(0), soon
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		asking, cancel := context.WithTimeout(ctx, gaugeEvery)
		if ask(asking) == nil {
			timer.Reset(gaugeEvery)
			wait = soon
		} else {
			timer.Reset(wait)
			wait = min(2*wait, gaugeEvery)
		}
		cancel()
	}
}

// gaugeStreams measures how full the streams are.
func (b *Bus) gaugeStreams(ctx context.Context) error {
	for _, name := range b.cfg.Streams {
		stream, err := b.js.Stream(ctx, name)
		if err != nil {
			return err
		}
		info := stream.CachedInfo()
		b.metrics.streamBytes.WithLabelValues(name).Set(float64(info.State.Bytes))
		b.metrics.streamLimit.WithLabelValues(name).Set(float64(info.Config.MaxBytes))
	}
	return nil
}

// gauge shows what is in this process.
func (g *group) gauge(now, oldest time.Time) {
	running := g.queue.counts()
	g.bus.metrics.inFlight.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(float64(running))
	g.bus.metrics.waiting.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(float64(max(0, int(g.held.Load())-running)))
	age := 0.0
	if !oldest.IsZero() {
		age = max(0, now.Sub(oldest).Seconds())
	}
	g.bus.metrics.oldest.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(age)
}

// keepGauging measures the lag of the consumer until stop is called. After that this process reports none.
func (g *group) keepGauging() (stop func()) {
	if g.bus.cfg.Registerer == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(g.handlers)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		gauge(ctx, g.gaugeLag)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// gaugeLag measures all partitions, so that every process shows the same.
func (g *group) gaugeLag(ctx context.Context) error {
	if g.cfg.Order != ByPartition {
		consumer, err := g.bus.js.Consumer(ctx, g.cfg.Stream, g.cfg.Durable)
		if err != nil {
			return err
		}
		g.showLag(behind(consumer.CachedInfo()))
		return nil
	}
	all, err := g.bus.Group(ctx, g.cfg.Stream, g.cfg.Durable)
	if err != nil {
		return err
	}
	total := all.Total()
	g.showLag(float64(total.Pending) + float64(total.AckPending))
	return nil
}

func (g *group) showLag(lag float64) {
	g.bus.metrics.lag.WithLabelValues(g.cfg.Stream, g.cfg.Durable).Set(lag)
}

// behind is what has not been delivered, and what has been delivered and not acknowledged.
func behind(info *jetstream.ConsumerInfo) float64 {
	return float64(info.NumPending) + float64(info.NumAckPending)
}
