package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	watchFirst        = time.Second     // interval of the checks until each dependency has been usable once
	watchInterval     = 5 * time.Second // interval of the checks afterwards
	checkTimeout      = 2 * time.Second
	readHeaderTimeout = 5 * time.Second
	stopTimeout       = time.Second // does not wait for a profile in progress
)

// Check tests one dependency; nil means that it is usable. Its ctx ends after two seconds.
type Check struct {
	Name     string
	Check    func(context.Context) error
	Optional bool // the service works without it: readiness does not wait for it
}

// Config configures a [Server].
type Config struct {
	Addr      string              // listen address, unless Listener is set
	Listener  net.Listener        // for tests; Run takes ownership and closes it
	PprofAddr string              // loopback address of the profiles; empty: none
	Service   string              // the service's name in /healthz and /readyz
	Checks    []Check             // the dependencies, checked concurrently
	Warnings  func() []string     // what an operator must know although the service works; nil: nothing
	Gatherer  prometheus.Gatherer // source of /metrics; nil: the default gatherer
	Logger    *slog.Logger
}

// Server is the operations server of one service:
//
//   - GET /healthz is 200 as long as the process responds.
//   - GET /readyz is 200 from the time that every dependency has been usable once until the service stops, and 503
//     before and after. A later outage of a dependency does not change it: it affects all replicas
//     (docs/decisions/0012-operation.md).
//   - GET /readyz?verbose has the same status, checks every dependency now and lists the results and the warnings.
//   - GET /metrics is for Prometheus. parley_dependency_up is the result of the last check of each dependency.
//
// It is for a cluster's internal network: it does not authenticate callers. GET /debug/pprof/ exposes the process's
// memory, so it is served only on PprofAddr, to this machine (or pod).
type Server struct {
	cfg          Config
	stopping     atomic.Bool
	dependencies *dependencies
}

// New returns a server that is not listening yet.
func New(cfg Config) *Server {
	if cfg.Gatherer == nil {
		cfg.Gatherer = prometheus.DefaultGatherer
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Warnings == nil {
		cfg.Warnings = func() []string { return nil }
	}
	return &Server{cfg: cfg, dependencies: newDependencies(cfg.Service, cfg.Checks)}
}

// SetStopping makes /readyz respond 503, so that no new traffic is routed here.
func (s *Server) SetStopping() { s.stopping.Store(true) }

// Run serves until ctx is done and then returns nil. It returns an error if it cannot listen.
func (s *Server) Run(ctx context.Context) error {
	ln := s.cfg.Listener
	if ln == nil {
		var err error
		ln, err = listen(ctx, s.cfg.Addr)
		if err != nil {
			return fmt.Errorf("operations server: %w", err)
		}
	}
	watchCtx, stopWatch := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stopWatch()
	watching.Go(func() { s.dependencies.watch(watchCtx) })
	if s.cfg.PprofAddr == "" {
		return s.serve(ctx, ln, s.Handler())
	}
	profiles, err := listenLoopback(ctx, s.cfg.PprofAddr)
	if err != nil {
		return errors.Join(fmt.Errorf("profiles: %w", err), ln.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { defer cancel(); ended <- s.serve(ctx, profiles, pprofHandler()) }()
	err = s.serve(ctx, ln, s.Handler())
	cancel()
	return errors.Join(err, <-ended)
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
}

// listenLoopback rejects an address that is reachable from other machines, after name resolution.
func listenLoopback(ctx context.Context, addr string) (net.Listener, error) {
	ln, err := listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	if at, ok := ln.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s is not a loopback address", addr), ln.Close())
	}
	return ln, nil
}

func (s *Server) serve(ctx context.Context, ln net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { stopServer(ctx, server) })
	err := server.Serve(ln)
	if !stop() {
		// Shutdown has begun and waits for requests in flight.
		stopServer(ctx, server)
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("operations server: %w", err)
	}
	return nil
}

func stopServer(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}

func pprofHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// Handler returns the endpoints without a server.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle(
		"GET /metrics",
		promhttp.HandlerFor(prometheus.Gatherers{s.cfg.Gatherer, s.dependencies.registry}, promhttp.HandlerOpts{
			EnableOpenMetrics: true,                     // the format with exemplars, for scrapers that accept it
			ErrorHandling:     promhttp.ContinueOnError, // one broken collector must not hide the others
			ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelWarn),
		}),
	)
	return mux
}

// Dependencies checks every dependency now and returns [StatusOK] or the error, by name.
func (s *Server) Dependencies(ctx context.Context) map[string]string {
	return s.dependencies.runAll(ctx)
}

// Report is the body of /healthz and /readyz.
type Report struct {
	Service      string            `json:"service"`
	Status       string            `json:"status"`                 // ok, unavailable or stopping
	Dependencies map[string]string `json:"dependencies,omitempty"` // StatusOK, or the error
	Warnings     []string          `json:"warnings,omitempty"`     // they do not change the status
}

// StatusOK is the status of a ready service, and of a usable dependency.
const StatusOK = "ok"

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	s.write(w, http.StatusOK, Report{Service: s.cfg.Service, Status: StatusOK})
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	answer := Report{Service: s.cfg.Service, Status: StatusOK}
	if r.URL.Query().Has("verbose") || !s.dependencies.allSeen() {
		answer.Dependencies = s.dependencies.runAll(r.Context())
		answer.Warnings = s.cfg.Warnings()
	}
	status := http.StatusOK
	if !s.dependencies.allSeen() {
		answer.Status, status = "unavailable", http.StatusServiceUnavailable
	}
	if s.stopping.Load() {
		answer.Status, status = "stopping", http.StatusServiceUnavailable
	}
	s.write(w, status, answer)
}

func (s *Server) write(w http.ResponseWriter, status int, answer Report) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.cfg.Logger.Debug("writing a readiness report", "error", err.Error()) // the prober disconnected
	}
}
