package embedding

import "github.com/prometheus/client_golang/prometheus"

// How the passages of a question are ordered.
const (
	orderMeaning = "meaning"
	orderFailed  = "failed" // by words: the server failed
	orderKept    = "kept"   // by words: the server was not called, since it fails
	orderNone    = "none"   // by words: the passages have no embeddings yet
)

type metrics struct {
	searches *prometheus.CounterVec
	passages prometheus.Counter
	failures prometheus.Counter
	tokens   prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		searches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_knowledge_searches_total",
			Help: "Questions of companies that rank passages by meaning, by order: meaning; or words, because " +
				"the server failed, was kept from the call since it fails, or none of the passages has an embedding.",
		}, []string{"order"}),
		passages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_knowledge_embedded_total",
			Help: "Passages whose embeddings were made.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_knowledge_embedding_failures_total",
			Help: "Failures after which the embeddings of a company's passages wait.",
		}),
		tokens: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_knowledge_embedding_tokens_total",
			Help: "Tokens that the models report for embeddings.",
		}),
	}
	for _, order := range []string{orderMeaning, orderFailed, orderKept, orderNone} {
		m.searches.WithLabelValues(order) // at zero, so that the first increment is visible
	}
	if registerer != nil {
		for _, c := range []prometheus.Collector{m.searches, m.passages, m.failures, m.tokens} {
			_ = registerer.Register(c) // fails only if another service of the process has registered the same metrics
		}
	}
	return m
}

func (m *metrics) searched(order string) { m.searches.WithLabelValues(order).Inc() }

func (m *metrics) used(tokens int) { m.tokens.Add(float64(tokens)) }
