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
	checkTimeout      = 2 * time.Second
	readHeaderTimeout = 5 * time.Second
	stopTimeout       = time.Second // a profile that is being taken is not waited for
)

// Check looks at one dependency; nil means that it can be used. Its ctx ends after two seconds.
type Check struct {
	Name  string
	Check func(context.Context) error
}

// Config is what a [Server] needs.
type Config struct {
	Addr      string              // where to listen, unless Listener is set
	Listener  net.Listener        // for tests; taken over and closed by Run
	PprofAddr string              // where profiles are served, a loopback address; empty: nowhere
	Service   string              // the service's name, shown by /healthz and /readyz
	Checks    []Check             // looked at by /readyz, all at once
	Gatherer  prometheus.Gatherer // what /metrics shows; nil: the default gatherer
	Logger    *slog.Logger
}

// Server is the operations server of one service:
//
//   - GET /healthz is 200 as long as the process answers.
//   - GET /readyz is 200 when every dependency can be used, else, or when the service is stopping, 503. It names each.
//   - GET /metrics is for Prometheus.
//
// It is meant for the inside of a cluster: nothing here asks who is calling. GET /debug/pprof/ shows the process's memory, so it is
// served only on PprofAddr, to this machine (or pod).
type Server struct {
	cfg      Config
	stopping atomic.Bool
}

// New returns a server that does not listen yet.
func New(cfg Config) *Server {
	if cfg.Gatherer == nil {
		cfg.Gatherer = prometheus.DefaultGatherer
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg}
}

// SetStopping makes /readyz answer 503 from now on, so that nothing new is sent here.
func (s *Server) SetStopping() { s.stopping.Store(true) }

// Run serves until ctx is done and returns nil then. It returns an error when it cannot listen.
func (s *Server) Run(ctx context.Context) error {
	ln := s.cfg.Listener
	if ln == nil {
		var err error
		if ln, err = listen(ctx, s.cfg.Addr); err != nil {
			return fmt.Errorf("operations server: %w", err)
		}
	}
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

// listenLoopback refuses an address that others reach, whatever the name in it resolves to.
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
		// The stop has begun; Shutdown waits for it and for what is in flight.
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

// Handler returns the endpoints without a server around them.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{
		EnableOpenMetrics: true,                     // the format that carries exemplars, for who asks for it
		ErrorHandling:     promhttp.ContinueOnError, // one broken collector must not hide the others
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelWarn),
	}))
	return mux
}

// report is the body of /healthz and /readyz.
type report struct {
	Service      string            `json:"service"`
	Status       string            `json:"status"`                 // ok, unavailable or stopping
	Dependencies map[string]string `json:"dependencies,omitempty"` // ok, or what is wrong
}

const statusOK = "ok"

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	s.write(w, http.StatusOK, report{Service: s.cfg.Service, Status: statusOK})
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	answer := report{Service: s.cfg.Service, Status: statusOK, Dependencies: s.look(r.Context())}
	status := http.StatusOK
	for _, state := range answer.Dependencies {
		if state != statusOK {
			answer.Status, status = "unavailable", http.StatusServiceUnavailable
		}
	}
	if s.stopping.Load() {
		answer.Status, status = "stopping", http.StatusServiceUnavailable
	}
	s.write(w, status, answer)
}

func (s *Server) write(w http.ResponseWriter, status int, answer report) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.cfg.Logger.Debug("writing a readiness report", "error", err.Error()) // the prober left
	}
}

// look asks all checks at once and waits for none longer than checkTimeout, also when a check does not heed its ctx.
func (s *Server) look(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var mu sync.Mutex
	var group sync.WaitGroup
	states := map[string]string{}
	for _, check := range s.cfg.Checks {
		group.Go(func() {
			state := lookAt(ctx, check)
			mu.Lock()
			defer mu.Unlock()
			states[check.Name] = state
		})
	}
	group.Wait()
	return states
}

func lookAt(ctx context.Context, check Check) string {
	result := make(chan error, 1)
	go func() { result <- callRecovered(ctx, check) }()
	select {
	case err := <-result:
		if err != nil {
			return err.Error()
		}
		return statusOK
	case <-ctx.Done():
		return "no answer in time"
	}
}

func callRecovered(ctx context.Context, check Check) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return check.Check(ctx)
}
