package bot

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
)

// resultKept is a call that was not made, because the breaker is open.
const resultKept = "kept"

// callMetrics measures the calls of a server. The bus measures the pending messages and the age of the oldest.
type callMetrics struct {
	calls   *prometheus.CounterVec
	seconds prometheus.Histogram
	running prometheus.Gauge
}

// newCallMetrics registers the metrics of the server with the name what, such as webhook.
func newCallMetrics(what string, registerer prometheus.Registerer, open func() int) *callMetrics {
	prefix := "parley_bot_" + strings.ToLower(what)
	m := &callMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "_calls_total",
			Help: "Calls of the bot's " + what + " by result: ok, the code of the error, " +
				"or kept (not made: the server is away or has asked for a pause).",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "_seconds", Help: "How long a call of the bot's " + what + " took.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: prefix + "_running",
			Help: "Calls of the bot's " + what + " that run.",
		}),
	}
	breaker := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: prefix + "_open",
		Help: "Applications for which the " + what + " is not called: it is away or has asked for a pause.",
	}, func() float64 { return float64(open()) })
	results := []string{"ok", resultKept}
	for _, code := range []apperr.Code{apperr.Unavailable, apperr.TooMany, apperr.Invalid} {
		results = append(results, string(code))
	}
	for _, result := range results {
		m.calls.WithLabelValues(result) // at zero, so that the first increment is visible
	}
	if registerer != nil {
		for _, c := range []prometheus.Collector{m.calls, m.seconds, m.running, breaker} {
			_ = registerer.Register(c) // fails only if another bot of the process has registered the same metrics
		}
	}
	return m
}

func (m *callMetrics) kept() { m.calls.WithLabelValues(resultKept).Inc() }

func (m *callMetrics) called(err error, took time.Duration) {
	result := "ok"
	if err != nil {
		result = string(apperr.CodeOf(err))
	}
	m.calls.WithLabelValues(result).Inc()
	m.seconds.Observe(took.Seconds())
}

// usageMetrics counts the tokens that a language model reports.
type usageMetrics struct {
	input, output prometheus.Counter
	refused       prometheus.Counter
	tools         *prometheus.CounterVec
	expansions    *prometheus.CounterVec
}

// Results of the expansion of a search.
const (
	expansionOK     = "ok"
	expansionFailed = "failed"
)

func newUsageMetrics(registerer prometheus.Registerer) *usageMetrics {
	tokens := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_bot_llm_tokens_total",
		Help: "Tokens reported by the language model, by direction: input, output.",
	}, []string{"direction"})
	m := &usageMetrics{
		input: tokens.WithLabelValues("input"), output: tokens.WithLabelValues("output"),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_bot_llm_budget_refused_total",
			Help: "Questions that were not asked because their visitor or application has spent its tokens.",
		}),
	}
	m.tools = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_bot_tool_calls_total",
		Help: "Calls of tools that the language model wanted, by outcome: ok, failed, asked, refused, unknown.",
	}, []string{"outcome"})
	for _, outcome := range []bots.ToolOutcome{
		bots.ToolOK, bots.ToolFailed, bots.ToolAsked, bots.ToolRefused, bots.ToolUnknown,
	} {
		m.tools.WithLabelValues(string(outcome)) // at zero, so that the first increment is visible
	}
	m.expansions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_bot_llm_expansions_total",
		Help: "Questions for which the language model was asked for words to search documents with, by result: ok, failed.",
	}, []string{"result"})
	for _, result := range []string{expansionOK, expansionFailed} {
		m.expansions.WithLabelValues(result) // at zero, so that the first increment is visible
	}
	if registerer != nil {
		for _, c := range []prometheus.Collector{tokens, m.refused, m.tools, m.expansions} {
			_ = registerer.Register(c) // fails only if another bot of the process has registered the same metrics
		}
	}
	return m
}

func (m *usageMetrics) used(u completionUsage) {
	m.input.Add(float64(u.Input))
	m.output.Add(float64(u.Output))
}
