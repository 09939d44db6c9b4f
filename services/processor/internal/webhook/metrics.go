package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/webhook"
)

// Results of an attempt in metrics.
const (
	resultOK       = "ok"
	resultRefused  = "refused"   // an answer other than 2xx
	resultNoAnswer = "no_answer" // timeout, or no connection
)

// statusDropped is an event that became no delivery, because its company stores too much.
const statusDropped = "dropped"

type metrics struct {
	attempts   *prometheus.CounterVec
	seconds    prometheus.Histogram
	deliveries *prometheus.CounterVec
	warnings   prometheus.Counter
	disabled   *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, running func() float64) *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_webhook_attempts_total",
			Help: "Requests of outgoing webhooks by result: ok, refused (a response other than 2xx) or no_answer.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "parley_webhook_attempt_seconds",
			Help:    "Duration of a request of an outgoing webhook.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_webhook_deliveries_total",
			Help: "Deliveries of outgoing webhooks that ended, by status: delivered, failed, " +
				"or dropped (events of a company that stores too much).",
		}, []string{"status"}),
		warnings: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_webhook_warnings_total", Help: "Warnings about webhook endpoints that keep failing.",
		}),
		disabled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_webhook_endpoints_disabled_total",
			Help: "Webhook endpoints that were disabled, by reason: failing or gone.",
		}, []string{"reason"}),
	}
	for _, result := range []string{resultOK, resultRefused, resultNoAnswer} {
		m.attempts.WithLabelValues(result)
	}
	for _, status := range []string{webhook.Delivered, webhook.Failed, statusDropped} {
		m.deliveries.WithLabelValues(status)
	}
	for _, reason := range []string{webhook.DisabledFailing, webhook.DisabledGone} {
		m.disabled.WithLabelValues(reason)
	}
	if registerer == nil {
		return m
	}
	requests := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_webhook_requests_running",
		Help: "Current requests of outgoing webhooks.",
	}, running)
	for _, c := range []prometheus.Collector{m.attempts, m.seconds, m.deliveries, m.warnings, m.disabled, requests} {
		_ = registerer.Register(c) // fails only if another service of the process has registered the same metrics
	}
	return m
}

func (m *metrics) attempted(r result, o webhook.Outcome) {
	name := resultRefused
	switch {
	case r.succeeded():
		name = resultOK
	case r.attempt.StatusCode == 0:
		name = resultNoAnswer
	}
	m.attempts.WithLabelValues(name).Inc()
	m.seconds.Observe(r.attempt.Duration.Seconds())
	m.ended(o)
}

// dropped counts an event without deliveries.
func (m *metrics) dropped() { m.deliveries.WithLabelValues(statusDropped).Inc() }

// ended counts a delivery that has ended.
func (m *metrics) ended(o webhook.Outcome) {
	if o.Status != webhook.Pending {
		m.deliveries.WithLabelValues(o.Status).Inc()
	}
}
