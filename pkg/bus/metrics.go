package bus

// The metrics of a bus, which all files of the package set.

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of a publish: values of the label result of parley_bus_publish_seconds.
const (
	resultOK          = "ok"
	resultFull        = "full"
	resultUnavailable = "unavailable"
	resultNotWritable = "not_writable"
	resultNotSynced   = "not_synced"
	resultInvalid     = "invalid"
	resultOverBudget  = "over_budget"
)

type metrics struct {
	published   map[string]prometheus.Observer // by result: saves the label lookup in the hot path
	handled     *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
	redelivered *prometheus.CounterVec
	lag         *prometheus.GaugeVec
	partitions  *prometheus.GaugeVec
	inFlight    *prometheus.GaugeVec
	waiting     *prometheus.GaugeVec
	oldest      *prometheus.GaugeVec
	streamBytes *prometheus.GaugeVec
	streamLimit *prometheus.GaugeVec
	writable    *prometheus.GaugeVec
	lost        *prometheus.GaugeVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	publish := register(registerer, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "parley_bus_publish_seconds",
		Help:    "Time from publishing an event until the stream has it for good, or its refusal.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"result"}))
	m := &metrics{
		published: make(map[string]prometheus.Observer),
		handled: register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_bus_handled_total",
			Help: "Attempts to handle a delivery, by consumer and result: ok, or the code of the error.",
		}, []string{"stream", "consumer", "result"})),
		deadLetters: register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_bus_dead_letters_total",
			Help: "Deliveries that a consumer gave up on.",
		}, []string{"stream", "consumer"})),
		redelivered: register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_bus_redeliveries_total",
			Help: "Retries of handling a delivery.",
		}, []string{"stream", "consumer"})),
		lag: register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_bus_consumer_lag",
			Help: "Events that a consumer has not handled yet, in all partitions, as counted by the server; " +
				"the same in every process that consumes.",
		}, []string{"stream", "consumer"})),
		partitions: register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_bus_partitions",
			Help: "Partitions of a consumer that this process reads.",
		}, []string{"stream", "consumer"})),
		inFlight: register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_bus_in_flight",
			Help: "Deliveries that are being handled in this process.",
		}, []string{"stream", "consumer"})),
		waiting: register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_bus_waiting",
			Help: "Deliveries in this process that wait for their turn or for a retry.",
		}, []string{"stream", "consumer"})),
		oldest: register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_bus_oldest_seconds",
			Help: "Age of the oldest delivery that this process holds; 0: none.",
		}, []string{"stream", "consumer"})),
		streamBytes: register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_bus_stream_bytes",
			Help: "Size of a stream in bytes; the same in every process.",
		}, []string{"stream"})),
		streamLimit: register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_bus_stream_limit_bytes",
			Help: "Maximum size of a stream in bytes, above which it rejects events.",
		}, []string{"stream"})),
		writable: register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_bus_stream_writable",
			Help: "0 while a stream does not acknowledge what this process publishes: " +
				"NATS cannot write it, its disk may be full.",
		}, []string{"stream"})),
		lost: register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_bus_stream_lost_messages",
			Help: "Messages that a stream had acknowledged and has lost, for a day after this was noticed; " +
				"the same in every process.",
		}, []string{"stream"})),
	}
	for _, result := range []string{
		resultOK, resultFull, resultUnavailable, resultNotWritable, resultNotSynced, resultInvalid,
		resultOverBudget,
	} {
		m.published[result] = publish.WithLabelValues(result)
	}
	return m
}

// begin initialises the consumer's counters at zero, so that the first increment is visible.
func (m *metrics) begin(c Consumer) {
	m.deadLetters.WithLabelValues(c.Stream, c.Durable)
	m.redelivered.WithLabelValues(c.Stream, c.Durable)
}

// end deletes the consumer's gauges, which this process no longer updates.
func (m *metrics) end(c Consumer) {
	for _, gauge := range []*prometheus.GaugeVec{m.lag, m.partitions, m.inFlight, m.waiting, m.oldest} {
		gauge.DeleteLabelValues(c.Stream, c.Durable)
	}
}

// showLost shows the last lost tail of a stream, for [lostTailShown].
func (m *metrics) showLost(stream string, l LostTail) {
	messages := l.Messages()
	if !l.shown() {
		messages = 0
	}
	m.lost.WithLabelValues(stream).Set(float64(messages))
}

// register registers a collector. If another bus of the process has registered an equal one, it returns that one.
func register[C prometheus.Collector](registerer prometheus.Registerer, collector C) C {
	if registerer == nil {
		return collector
	}
	err := registerer.Register(collector)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return collector
}
