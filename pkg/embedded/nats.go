package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// maxPayload leaves room for an event that contains the largest body the APIs accept (1 MiB).
	maxPayload = 2 << 20
	// maxStore only has to exceed the sum of the streams' reservations: the streams limit actual use.
	maxStore = 1 << 40
	// natsStartLimit is the start timeout, which includes reading a large store.
	natsStartLimit = 30 * time.Second
	natsStartPoll  = 50 * time.Millisecond
)

// NATSConfig configures the address and the storage of the embedded NATS server.
type NATSConfig struct {
	Addr   string       // host:port; port 0 selects a free port; empty: 127.0.0.1:0
	Dir    string       // directory of JetStream's files; required
	Logger *slog.Logger // warnings and errors of the server; nil: silent
}

// NATS is a NATS server with JetStream in this process. It syncs its streams for their publishers (pkg/streamsync).
type NATS struct {
	cfg  NATSConfig
	addr string // the bound address, kept across restarts
	log  *slog.Logger

	mu      sync.Mutex
	server  *instance
	fault   error // why it cannot write; nil: it can
	stopped bool
}

// StartNATS starts a server and returns when it accepts connections and JetStream has recovered its store.
func StartNATS(cfg NATSConfig) (*NATS, error) {
	s, err := startServer(cfg)
	if err != nil {
		return nil, err
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &NATS{cfg: cfg, addr: s.Addr().String(), log: log, server: s}, nil
}

// instance is one start of the server.
type instance struct {
	*server.Server
	stopSyncs func()
}

func startServer(cfg NATSConfig) (*instance, error) {
	options, err := natsOptions(cfg)
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("configuring embedded NATS: %w", err)
	}
	log := newNATSLog(cfg.Logger)
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	stopSyncs, err := await(s, log, cfg.Dir)
	if err != nil {
		stopServer(s)
		return nil, fmt.Errorf("starting embedded NATS on %s: %w", cfg.Addr, err)
	}
	return &instance{Server: s, stopSyncs: stopSyncs}, nil
}

// await returns when the server works and its streams are synced.
func await(s *server.Server, log *natsLog, dir string) (stopSyncs func(), err error) {
	if err := awaitNATS(s, log); err != nil {
		return nil, err
	}
	return serveSyncs(s, dir, log.log)
}

func (i *instance) stop() {
	i.stopSyncs()
	stopServer(i.Server)
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// awaitNATS returns when the server is ready, or as soon as it has failed.
func awaitNATS(s *server.Server, log *natsLog) error {
	for deadline := time.Now().Add(natsStartLimit); time.Now().Before(deadline); {
		if s.ReadyForConnections(natsStartPoll) && s.JetStreamEnabled() {
			return nil
		}
		select {
		case <-log.failed:
			return errors.New(log.fatal)
		default:
		}
	}
	return errors.New("not ready in time")
}

func natsOptions(cfg NATSConfig) (*server.Options, error) {
	if cfg.Dir == "" {
		return nil, errors.New("embedded NATS: Dir is missing")
	}
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	host, portText, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS: address: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS: port: %w", err)
	}
	options := &server.Options{
		ServerName:        "parley",
		Host:              host,
		Port:              int(port),
		JetStream:         true,
		StoreDir:          cfg.Dir,
		JetStreamMaxStore: maxStore,
		MaxPayload:        maxPayload,
		NoSigs:            true,
	}
	if port == 0 {
		options.Port = server.RANDOM_PORT
	}
	return options, nil
}

// URL returns the client URL. It does not change across restarts.
func (n *NATS) URL() string { return n.Server().ClientURL() }

// Server returns the server itself, for in-process connections.
func (n *NATS) Server() *server.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server.Server
}

// Stop stops the server and returns when its files are closed. It is safe to call more than once.
func (n *NATS) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.stopped {
		n.stopped = true
		n.server.stop()
	}
}

// natsLog writes the server's log to slog. It keeps the first fatal message, which is why a start failed.
type natsLog struct {
	log    *slog.Logger
	once   sync.Once
	failed chan struct{} // closed once fatal is set
	fatal  string
}

func newNATSLog(log *slog.Logger) *natsLog {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &natsLog{log: log, failed: make(chan struct{})}
}

// Noticef logs the server's notices at debug level.
func (l *natsLog) Noticef(format string, v ...any) {
	l.log.Debug("embedded NATS", "message", fmt.Sprintf(format, v...))
}

// Warnf logs a warning.
func (l *natsLog) Warnf(format string, v ...any) {
	l.log.Warn("embedded NATS", "message", fmt.Sprintf(format, v...))
}

// Errorf logs an error.
func (l *natsLog) Errorf(format string, v ...any) {
	l.log.Error("embedded NATS", "message", fmt.Sprintf(format, v...))
}

// Fatalf keeps the reason why the server cannot run.
func (l *natsLog) Fatalf(format string, v ...any) {
	l.once.Do(func() {
		l.fatal = fmt.Sprintf(format, v...)
		close(l.failed)
	})
}

// Debugf drops the server's debug lines.
func (l *natsLog) Debugf(string, ...any) {}

// Tracef drops the server's trace lines.
func (l *natsLog) Tracef(string, ...any) {}
