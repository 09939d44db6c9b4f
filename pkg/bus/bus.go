package bus

// The connection to NATS: its settings, its life from Open to Close, and what happens when it is lost and
// restored.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	dialTimeout      = 2 * time.Second
	pingInterval     = 5 * time.Second
	minReconnectWait = 50 * time.Millisecond
	maxReconnectWait = time.Second
	closeTimeout     = 5 * time.Second
)

// Config configures the connection and the streams that the service needs.
type Config struct {
	URL       string // server URLs, separated by commas
	CredsFile string // user credentials; empty: none
	CAFile    string // PEM file of the CAs that sign the server's certificate; empty: the system's
	CertFile  string // PEM file of the client certificate for mutual TLS; requires KeyFile
	KeyFile   string
	Name      string // service name: names the connection; published events have the ce-source "/"+Name

	// Streams are the streams that the service uses. The bus is not ready without them, and its metrics
	// measure them. nil: all event streams. The bus never creates or changes a stream (see
	// [Bus.ApplyStreams]).
	Streams []string
	// Observe skips the wait for streams, for tools that inspect a system in any state.
	Observe bool

	Meter      Meter // charges what is published; nil: nothing is charged
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics
	Tracer     *tracing.Tracer       // nil: no traces
	// InProcess, if set, connects to a server in this process without a socket; URL is then optional.
	InProcess nats.InProcessConnProvider
}

// Bus is a connection to NATS and Parley's streams. It is safe for concurrent use.
type Bus struct {
	cfg     Config
	log     *slog.Logger
	source  string // ce-source
	conn    *nats.Conn
	js      jetstream.JetStream
	metrics *metrics
	acks    *ackTable
	marks   streamMarks
	guards  writeGuards
	syncs   streamSyncs
	fills   fills
	outbox  outbox
	// recordSync syncs the records of lost tails.
	recordSync *streamSync
	// sweeping tracks the goroutine of acks.sweep, which ends with ctx.
	sweeping sync.WaitGroup
	// envelopes reuses message buffers: publishing is the hot path of the APIs.
	envelopes sync.Pool

	ctx        context.Context // cancelled by Close
	cancel     context.CancelFunc
	closing    atomic.Bool
	streams    *streamWatcher
	clock      clock
	partitions *partitionTable
	gauging    sync.WaitGroup
	connUp     signal // sent after every connect; wakes the consumers
	state      *connState
	lost       context.Context // see [Bus.Lost]
	giveUp     context.CancelCauseFunc
}

// Open returns at once and connects in the background, retrying without a time limit. It fails only if cfg is
// invalid. After every connect it checks for the streams until all exist.
func Open(cfg Config) (*Bus, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	b := &Bus{cfg: cfg, log: tracing.Logger(cfg.Logger), source: "/" + cfg.Name, metrics: newMetrics(cfg.Registerer)}
	b.clock.now = time.Now
	b.lost, b.giveUp = context.WithCancelCause(context.Background())
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.state = newConnState(b.ctx)
	b.guards = newWriteGuards(b.log, b.metrics.writable)
	b.marks = newStreamMarks()
	b.acks = newAckTable(b.guards.late, b.marks.acknowledged)
	b.syncs = newStreamSyncs(b)
	b.recordSync = &streamSync{stream: subject.Positions, bus: b}
	b.envelopes.New = func() any { return newEnvelope() }
	b.streams = newStreamWatcher(b)
	b.partitions = newPartitionTable(b)
	if err := b.connect(); err != nil {
		b.cancel()
		return nil, fmt.Errorf("bus: %w", err)
	}
	if err := b.start(); err != nil {
		b.Close()
		return nil, fmt.Errorf("bus: %w", err)
	}
	return b, nil
}

func (cfg Config) complete() (Config, error) {
	var faults []string
	need := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	need(cfg.URL != "" || cfg.InProcess != nil, "URL is missing")
	need(subject.Valid(cfg.Name), "Name is missing or contains dots, wildcards or spaces")
	need(cfg.Logger != nil, "Logger is missing")
	need(
		!slices.ContainsFunc(cfg.Streams, func(name string) bool { return !subject.Valid(name) }),
		"Streams contains an invalid stream name",
	)
	files := map[string]string{
		"CredsFile": cfg.CredsFile,
		"CAFile":    cfg.CAFile,
		"CertFile":  cfg.CertFile,
		"KeyFile":   cfg.KeyFile,
	}
	for name, file := range files {
		if file != "" {
			_, err := os.Stat(file)
			need(err == nil, fmt.Sprintf("%s: %v", name, err))
		}
	}
	need((cfg.CertFile == "") == (cfg.KeyFile == ""), "CertFile and KeyFile must be set together")
	if cfg.Streams == nil {
		cfg.Streams = eventStreams()
	}
	if len(faults) > 0 {
		return cfg, errors.New(strings.Join(faults, "; "))
	}
	return cfg, nil
}

// connect opens the connection. It retries in the background while NATS is not available.
func (b *Bus) connect() error {
	conn, err := nats.Connect(b.cfg.URL, b.options()...)
	if err != nil {
		return fmt.Errorf("connecting to NATS: %w", err)
	}
	b.conn = conn
	b.outbox.handOver = conn.PublishMsg
	b.outbox.refused = func(m *nats.Msg, reason error) { b.acks.resolve(m.Reply, reason) }
	if conn.Status() != nats.CONNECTED {
		b.log.Warn("NATS not available, connecting in the background", "url", b.redactedURL())
	}
	b.js, err = jetstream.New(conn)
	return err
}

func (b *Bus) options() []nats.Option {
	options := []nats.Option{
		nats.Name(b.cfg.Name),
		nats.CustomInboxPrefix("_INBOX." + b.cfg.Name), // so that permissions can isolate the inboxes of services
		nats.Timeout(dialTimeout),
		nats.PingInterval(pingInterval),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.IgnoreAuthErrorAbort(),    // credentials may be fixed while the process runs
		nats.ReconnectOnFlusherError(), // detect a failed write at once, not at the next read
		nats.ReconnectBufSize(-1),      // reject publishes while disconnected instead of buffering them
		nats.SyncQueueLen(batchQueue),
		nats.ConnectHandler(func(c *nats.Conn) { b.connected(c) }),
		nats.ReconnectHandler(func(c *nats.Conn) { b.connected(c) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { b.disconnected(err) }),
		nats.ClosedHandler(func(c *nats.Conn) { b.closed(c) }),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) { b.asyncError(s, err) }),
	}
	if b.cfg.CredsFile != "" {
		options = append(options, nats.UserCredentials(b.cfg.CredsFile))
	}
	if b.cfg.CAFile != "" {
		options = append(options, nats.RootCAs(b.cfg.CAFile))
	}
	if b.cfg.CertFile != "" {
		options = append(options, nats.ClientCert(b.cfg.CertFile, b.cfg.KeyFile))
	}
	if b.cfg.InProcess != nil {
		options = append(options, nats.InProcessServer(b.cfg.InProcess))
	}
	return options
}

func reconnectDelay(attempts int) time.Duration {
	return min(minReconnectWait<<min(attempts, 10), maxReconnectWait)
}

// start subscribes to acknowledgements and starts the stream watcher and the gauges.
func (b *Bus) start() error {
	if err := b.acks.listen(b.conn); err != nil {
		return fmt.Errorf("listening for acknowledgements: %w", err)
	}
	b.sweeping.Go(func() { b.acks.sweep(b.ctx) })
	b.streams.start()
	if b.cfg.Registerer != nil || b.cfg.Meter != nil {
		b.gauging.Go(func() { gauge(b.ctx, b.measureStreams) })
	}
	if slices.Contains(b.cfg.Streams, subject.Replies) && !b.cfg.Observe {
		b.gauging.Go(func() { gauge(b.ctx, b.refreshClock) })
	}
	return nil
}

// connected, disconnected and closed run on the connection's goroutine, possibly before connect has returned
// and set b.conn. They therefore use the connection passed to them.
func (b *Bus) connected(conn *nats.Conn) {
	b.log.Info("NATS connected", "server", conn.ConnectedAddr())
	b.partitions.forgetAll()
	b.guards.reconnected()
	b.streams.check()
	b.connUp.send()
}

func (b *Bus) disconnected(err error) {
	b.state.disconnected()
	b.marks.freeze()
	b.acks.failAll(nats.ErrDisconnected)
	if !b.closing.Load() {
		b.log.Warn("NATS disconnected, reconnecting", "url", b.redactedURL(), "error", err)
	}
}

func (b *Bus) closed(conn *nats.Conn) {
	b.acks.failAll(nats.ErrConnectionClosed)
	if !b.closing.Load() {
		b.log.Error("NATS connection closed", "error", conn.LastError())
		b.giveUp(errors.New("the connection to NATS was given up; see the log"))
	}
}

// Lost is done if the process must end and be started again, and its cause says why: nats.go has given the connection
// up, which it does after a violation of the protocol, or a stream has lost messages that it had acknowledged
// ([LostTail]).
func (b *Bus) Lost() context.Context { return b.lost }

func (b *Bus) asyncError(s *nats.Subscription, err error) {
	if s != nil {
		b.log.Error("NATS reported an error", "subject", s.Subject, "error", err)
		return
	}
	b.log.Error("NATS reported an error", "error", err)
}

// redactedURL returns the server URLs for the log without user info: a user without a password is a token.
func (b *Bus) redactedURL() string {
	if b.cfg.InProcess != nil {
		return "in process"
	}
	servers := strings.Split(b.cfg.URL, ",")
	for i, s := range servers {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || u.Host == "" {
			servers[i] = "(malformed)"
			continue
		}
		servers[i] = u.Scheme + "://" + u.Host
	}
	return strings.Join(servers, ",")
}

// Ready returns nil if NATS responds, all streams of the Config exist, and no stream that this process
// publishes to rejects writes.
func (b *Bus) Ready(ctx context.Context) error {
	if !b.conn.IsConnected() {
		return apperr.Unreachable("NATS", nats.ErrDisconnected)
	}
	for _, state := range []func() error{b.streams.state, b.guards.state, b.syncs.state} {
		if err := state(); err != nil {
			return apperr.Unreachable("NATS", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := b.conn.FlushWithContext(ctx); err != nil {
		return apperr.Unreachable("NATS", fmt.Errorf("flushing the connection: %w", err))
	}
	return nil
}

// RPC returns the questions and announcements over the connection of the bus. They end with [Bus.Close].
func (b *Bus) RPC() *rpc.Conn { return rpc.New(b.conn) }

// Close waits for publishes in flight, closes the connection and returns. Stop all consumers first. Close may
// be called more than once.
func (b *Bus) Close() {
	if b.closing.Swap(true) {
		return
	}
	b.acks.drain(closeTimeout)
	b.cancel()
	b.gauging.Wait()
	b.streams.wait()
	b.sweeping.Wait()
	b.conn.Close()
}
