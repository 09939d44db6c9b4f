package realtime

// All metrics of the gateway, in one place. Counters are initialised at zero, so that the first increment is
// visible.

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// Metrics are the metrics of the gateway; the bus exports its own.
type Metrics struct {
	connections   *prometheus.GaugeVec
	sockets       prometheus.Gauge
	publishes     *prometheus.CounterVec
	deliveries    prometheus.Counter
	connectErrors *prometheus.CounterVec
	disconnects   *prometheus.CounterVec
	drops         *prometheus.CounterVec
	recoveries    *prometheus.CounterVec
	replayed      prometheus.Counter
	receipts      *prometheus.CounterVec
	clientEvents  *prometheus.CounterVec
	parts         *prometheus.CounterVec
	redisLag      prometheus.Gauge
	registerer    prometheus.Registerer
}

// NewMetrics creates and registers the metrics. With a nil registerer they are not exported.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_gateway_connections", Help: "Open connections by transport.",
		}, []string{"transport"}),
		sockets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_gateway_sockets", Help: "Visitors' sockets that have joined their room.",
		}),
		publishes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_gateway_emits_total", Help: "Replies by result: ok, failed (retried), stale.",
		}, []string{"result"}),
		deliveries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_gateway_deliveries_total", Help: "Events handed to sockets of this gateway.",
		}),
		connectErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_gateway_connect_errors_total", Help: "Refused connections and sockets by reason.",
		}, []string{"reason"}),
		disconnects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_gateway_disconnects_total", Help: "Sockets that have ended, by reason.",
		}, []string{"reason"}),
		drops: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_gateway_drops_total",
			Help: "Events that were not delivered: repeated (already delivered to the room), " +
				"slow (a client that does not read was closed).",
		}, []string{"reason"}),
		recoveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_gateway_recoveries_total",
			Help: "Connecting sockets by recovery: hit, miss or limited (load the history), none (a first visit).",
		}, []string{"result"}),
		replayed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_gateway_replayed_total", Help: "Events that reconnecting clients received from the stream.",
		}),
		receipts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_gateway_receipts_total",
			Help: "Delivery reports of companies' messages: reported, failed (retried), lost (too many waited).",
		}, []string{"result"}),
		clientEvents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_gateway_client_events_total",
			Help: "Events token, typing and read of visitors: accepted, limited (too many), invalid, " +
				"failed (NATS or the Widget API unavailable).",
		}, []string{"event", "result"}),
		parts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_gateway_parts_total",
			Help: "Parts of messages that bots are writing: ok (emitted), failed (retried), stale, malformed, " +
				"snapshot (sent to a joining socket), unread (a socket joined without).",
		}, []string{"result"}),
		redisLag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_gateway_redis_lag_seconds", Help: "Last round trip to Redis.",
		}),
		registerer: registerer,
	}
	m.begin()
	if registerer == nil {
		return m, nil
	}
	for _, c := range m.collectors() {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// begin initialises the counters at zero so that Prometheus sees the first increment.
func (m *Metrics) begin() {
	for counter, values := range map[*prometheus.CounterVec][]string{
		m.drops:      {dropRepeated, dropSlow},
		m.recoveries: {recoveryHit, recoveryMiss, recoveryLimited, recoveryNone},
		m.receipts:   {receiptReported, receiptFailed, receiptLost},
		m.parts:      {publishOK, publishFailed, partDropped, partMalformed, partSnapshot, partUnread},
		m.connectErrors: {
			apperr.Unauthorized.Reason, apperr.OriginNotAllowed.Reason,
			apperr.ServiceUnavailable.Reason, apperr.InternalError.Reason,
		},
	} {
		for _, value := range values {
			counter.WithLabelValues(value)
		}
	}
	for _, name := range []string{eventToken, eventTyping, eventRead} {
		for _, result := range []string{resultAccepted, resultLimited, resultInvalid, resultFailed} {
			m.clientEvents.WithLabelValues(name, result)
		}
	}
}

func (m *Metrics) clientEvent(name, result string) {
	m.clientEvents.WithLabelValues(name, result).Inc()
}

// collectors returns all metrics, for the registration.
func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.connections, m.sockets, m.publishes, m.deliveries, m.connectErrors, m.disconnects, m.drops,
		m.recoveries, m.replayed, m.receipts, m.clientEvents, m.parts, m.redisLag,
	}
}

// Watch registers the metrics that are read from the engine on each scrape.
func (m *Metrics) Watch(stats func() socketio.Stats) error {
	if m.registerer == nil {
		return nil
	}
	rooms := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_gateway_rooms", Help: "Visitors with a socket here.",
	}, func() float64 { return float64(stats().Rooms) })
	buffered := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_gateway_send_buffer_bytes", Help: "Bytes queued for clients.",
	}, func() float64 { return float64(stats().Buffered) })
	return errors.Join(m.registerer.Register(rooms), m.registerer.Register(buffered))
}

const (
	dropRepeated = "repeated"
	dropSlow     = "slow"

	receiptReported = "reported"
	receiptFailed   = "failed"
	receiptLost     = "lost"

	publishOK     = "ok"
	publishFailed = "failed"
	publishStale  = "stale"

	partDropped   = "stale"
	partMalformed = "malformed"
	partSnapshot  = "snapshot"
	partUnread    = "unread"

	recoveryHit     = "hit"
	recoveryMiss    = "miss"
	recoveryLimited = "limited"
	recoveryNone    = "none"
)

func (m *Metrics) dropped(reason string)  { m.drops.WithLabelValues(reason).Inc() }
func (m *Metrics) part(result string)     { m.parts.WithLabelValues(result).Inc() }
func (m *Metrics) recovery(result string) { m.recoveries.WithLabelValues(result).Inc() }

// RedisAnswered records the duration of a round trip to Redis.
func (m *Metrics) RedisAnswered(after time.Duration) { m.redisLag.Set(after.Seconds()) }

func (m *Metrics) published(result string)    { m.publishes.WithLabelValues(result).Inc() }
func (m *Metrics) connectError(reason string) { m.connectErrors.WithLabelValues(reason).Inc() }

const (
	polling   = "polling"
	websocket = "websocket"
)

// Engine returns the metrics callbacks of the engine.
func (m *Metrics) Engine() socketio.Metrics {
	return socketio.Metrics{
		SessionOpened: func(transport string) { m.connections.WithLabelValues(transport).Inc() },
		SessionUpgraded: func() {
			m.connections.WithLabelValues(polling).Dec()
			m.connections.WithLabelValues(websocket).Inc()
		},
		SessionClosed:      func(transport, _ string) { m.connections.WithLabelValues(transport).Dec() },
		RequestRefused:     func(code int) { m.connectError("engineio_" + strconv.Itoa(code)) },
		SocketConnected:    func(string) { m.sockets.Inc() },
		SocketDisconnected: m.disconnected,
		Delivered:          func(_ string, sockets int) { m.deliveries.Add(float64(sockets)) },
	}
}

// slowClient is the engine's close reason for a socket whose send buffer was full.
const slowClient = string(engineio.ReasonSlow)

// disconnected counts a socket that has ended, and a slow client as a drop.
func (m *Metrics) disconnected(_, reason string) {
	m.sockets.Dec()
	m.disconnects.WithLabelValues(reason).Inc()
	if reason == slowClient {
		m.dropped(dropSlow)
	}
}
