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
	// maxPayload leaves room for an event around the largest body that the APIs accept (1 MiB).
	maxPayload = 2 << 20
	// maxStore only has to exceed the sum of what the streams may reserve: how much they really take is theirs to limit.
	maxStore = 1 << 40
	// natsStartLimit bounds the start with a large store to read.
	natsStartLimit = 30 * time.Second
	natsStartPoll  = 50 * time.Millisecond
)

// NATSConfig says where the embedded NATS listens and where it keeps its streams.
type NATSConfig struct {
	Addr   string       // host:port; port 0 takes a free one; empty: 127.0.0.1:0
	Dir    string       // the folder of JetStream's files; required
	Logger *slog.Logger // warnings and errors of the server; nil: silent
}

// NATS is a NATS server with JetStream in this process.
type NATS struct {
	cfg  NATSConfig
	addr string // that it was given
	log  *slog.Logger

	mu      sync.Mutex
	server  *server.Server
	fault   error // why it cannot write; nil: it can
	stopped bool
}

// StartNATS starts a server and returns when it accepts connections and JetStream has read its store.
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

func startServer(cfg NATSConfig) (*server.Server, error) {
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
	if err := awaitNATS(s, log); err != nil {
		stopServer(s)
		return nil, fmt.Errorf("starting embedded NATS on %s: %w", cfg.Addr, err)
	}
	return s, nil
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// awaitNATS returns when the server serves, or as soon as it has said that it never will.
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

// URL is where clients connect. It stays the same.
func (n *NATS) URL() string { return n.Server().ClientURL() }

// Server gives access to the server itself, also for connections without a socket.
func (n *NATS) Server() *server.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// Stop ends the server and returns when its files are closed. It may be called more than once.
func (n *NATS) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.stopped {
		n.stopped = true
		stopServer(n.server)
	}
}

// natsLog brings the server's log lines to slog. It keeps the first fatal one, which is why a start failed.
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

// Noticef is what the server says when all is well; that is detail here.
func (l *natsLog) Noticef(format string, v ...any) {
	l.log.Debug("embedded NATS", "says", fmt.Sprintf(format, v...))
}

// Warnf passes a warning on.
func (l *natsLog) Warnf(format string, v ...any) {
	l.log.Warn("embedded NATS", "says", fmt.Sprintf(format, v...))
}

// Errorf passes an error on.
func (l *natsLog) Errorf(format string, v ...any) {
	l.log.Error("embedded NATS", "says", fmt.Sprintf(format, v...))
}

// Fatalf keeps the reason for which the server cannot run.
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
