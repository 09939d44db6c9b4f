package processor

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// outboundInterval is the interval of the measurement of what waits for channels.
const outboundInterval = time.Minute

// outboundGauge measures how long messages have waited for a channel connector: nothing else notices that none runs.
type outboundGauge struct {
	bus     *bus.Bus
	now     func() time.Time
	log     *slog.Logger
	waiting *prometheus.GaugeVec
}

func newOutboundGauge(b *bus.Bus, now func() time.Time, log *slog.Logger, r prometheus.Registerer) outboundGauge {
	g := outboundGauge{bus: b, now: now, log: log, waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "parley_outbound_waiting_seconds",
		Help: "How long the oldest message of OUTBOUND has waited for a channel connector, by channel; 0: none waits.",
	}, []string{"channel"})}
	g.waiting.WithLabelValues(string(chat.ChannelPhone)) // at zero, so that the alert has a series
	if r != nil {
		_ = r.Register(g.waiting) // fails only if another processor of the process has registered it
	}
	return g
}

// run measures until ctx is done.
func (g outboundGauge) run(ctx context.Context) error {
	tick := time.NewTicker(outboundInterval)
	defer tick.Stop()
	for {
		if err := g.measure(ctx); err != nil && ctx.Err() == nil {
			g.log.WarnContext(ctx, "measuring what waits for channels", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (g outboundGauge) measure(ctx context.Context) error {
	waiting, err := g.bus.Unclaimed(ctx, subject.Outbound) // the oldest first
	if err != nil {
		return err
	}
	g.waiting.Reset()
	g.waiting.WithLabelValues(string(chat.ChannelPhone))
	seen := map[string]bool{}
	for _, w := range waiting {
		channel, _, _ := subject.ParseOutbound(w.Subject)
		if !seen[channel] {
			g.waiting.WithLabelValues(channel).Set(g.now().Sub(w.Since).Seconds())
		}
		seen[channel] = true
	}
	return nil
}
