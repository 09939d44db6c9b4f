package bot

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
)

// resultKept is a call that was not made, because the server is away or has asked for a pause.
const resultKept = "kept"

// webhookMetrics measures the calls of a webhook. How many messages are in hand and how old the oldest is the bus shows.
type webhookMetrics struct {
	calls   *prometheus.CounterVec
	seconds prometheus.Histogram
	running prometheus.Gauge
}

func newWebhookMetrics(registerer prometheus.Registerer, open func() bool) *webhookMetrics {
	m := &webhookMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_bot_webhook_calls_total",
			Help: "Calls of the bot's webhook by result: ok, the code of the error, or kept (not made: the server is away or has asked for a pause).",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_bot_webhook_seconds", Help: "How long a call of the bot's webhook took.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_bot_webhook_running",
			Help: "Calls of the bot's webhook that run, also those that take longer than BOT_WEBHOOK_TIMEOUT.",
		}),
	}
	breaker := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_bot_webhook_open", Help: "1 while the webhook is not called: it is away or has asked for a pause.",
	}, func() float64 {
		if open() {
			return 1
		}
		return 0
	})
	for _, result := range []string{"ok", resultKept, string(apperr.Unavailable), string(apperr.TooMany), string(apperr.Invalid)} {
		m.calls.WithLabelValues(result)
	}
	if registerer != nil {
		for _, c := range []prometheus.Collector{m.calls, m.seconds, m.running, breaker} {
			_ = registerer.Register(c) // fails only where a bot of the process has registered its like
		}
	}
	return m
}

func (m *webhookMetrics) kept() { m.calls.WithLabelValues(resultKept).Inc() }

func (m *webhookMetrics) called(err error, took time.Duration) {
	result := "ok"
	if err != nil {
		result = string(apperr.CodeOf(err))
	}
	m.calls.WithLabelValues(result).Inc()
	m.seconds.Observe(took.Seconds())
}
