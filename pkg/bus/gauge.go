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

// keepGauging measures how far the consumer is behind, until stop is called. Then nobody here can tell any more.
func (r *consumption) keepGauging() (stop func()) {
	if r.bus.cfg.Registerer == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.handlers)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		gauge(ctx, r.gaugeLag)
	}()
	return func() {
		cancel()
		<-ended
		r.bus.metrics.lag.DeleteLabelValues(r.cfg.Stream, r.cfg.Durable)
	}
}

func (r *consumption) gaugeLag(ctx context.Context) error {
	consumer, err := r.bus.js.Consumer(ctx, r.cfg.Stream, r.cfg.Durable)
	if err != nil {
		return err
	}
	r.bus.metrics.lag.WithLabelValues(r.cfg.Stream, r.cfg.Durable).Set(behind(consumer.CachedInfo()))
	return nil
}

// behind is what has not been delivered, and what has been delivered and not acknowledged.
func behind(info *jetstream.ConsumerInfo) float64 {
	return float64(info.NumPending) + float64(info.NumAckPending)
}
