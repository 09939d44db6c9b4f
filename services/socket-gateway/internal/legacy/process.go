package legacy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 10 * time.Second
	steady       = time.Minute // a child that has lived so long is started again without delay
	stopGrace    = 5 * time.Second
)

// Config is what a Process needs.
type Config struct {
	Argv  []string // the child's; nil: this binary with Command
	Setup Setup    // Socket is filled in
	// Connections whose token does not hold, in all and of one address, within the time for which they are kept. 0 is no bound.
	MaxUnauthorized, MaxUnauthorizedPerAddress int
	Address                                    func(*http.Request) string
	Tokens                                     Tokens
	Room                                       func(appID, chatUserID string) string
	Stderr                                     io.Writer             // of the child; nil: ours
	Registerer                                 prometheus.Registerer // nil: no metrics
	Logger                                     *slog.Logger
}

// Process is the child and the way to it.
type Process struct {
	cfg         Config
	dir         string
	proxy       *proxy
	connections atomic.Int64
	open        prometheus.Gauge
	starts      prometheus.Counter
}

// New returns a process that is not started yet. It must be closed.
func New(cfg Config) (*Process, error) {
	if cfg.Argv == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this binary: %w", err)
		}
		cfg.Argv = []string{self, Command}
	}
	if cfg.Stderr == nil {
		cfg.Stderr = os.Stderr
	}
	dir, err := os.MkdirTemp("", "parley-legacy-") // mode 0700
	if err != nil {
		return nil, fmt.Errorf("making a folder for the legacy server's socket: %w", err)
	}
	p := &Process{
		cfg: cfg, dir: dir,
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_gateway_legacy_connections", Help: "Open connections of old clients (Engine.IO 3).",
		}),
		starts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_gateway_legacy_starts_total", Help: "Starts of the server of old clients; more than one: it has crashed.",
		}),
	}
	p.cfg.Setup.Socket = filepath.Join(dir, "socket")
	p.proxy = newProxy(p.cfg)
	return p, p.register()
}

func (p *Process) register() error {
	if p.cfg.Registerer == nil {
		return nil
	}
	return errors.Join(p.cfg.Registerer.Register(p.open), p.cfg.Registerer.Register(p.starts))
}

// Connections counts the child's open connections, as of a moment ago, without those that have no valid token.
func (p *Process) Connections() int {
	return max(int(p.connections.Load())-p.proxy.unauthorized.count(), 0)
}

// Run keeps a child alive until ctx is done, and returns when it has ended.
func (p *Process) Run(ctx context.Context) {
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		started := time.Now()
		err := p.live(ctx)
		p.connections.Store(0)
		p.open.Set(0)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > steady {
			backoff = firstBackoff
		}
		p.cfg.Logger.WarnContext(ctx, "the legacy server exited, restarting it", "error", err, "in", backoff.String())
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
	}
}

// Revoke ends the sockets of a visitor whose tokens are revoked. A child that is not running has none.
func (p *Process) Revoke(ctx context.Context, chatUserID string) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	target := "http://legacy" + revokePath + "?" + url.Values{"chatUserId": {chatUserID}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return // never: the address is well formed
	}
	response, err := p.proxy.reverse.Transport.RoundTrip(r)
	if err != nil {
		p.cfg.Logger.WarnContext(ctx, "sending a token revocation to the legacy server failed", "error", err)
		return
	}
	_ = response.Body.Close()
}

// live is one life of the child.
func (p *Process) live(ctx context.Context) error {
	_ = os.Remove(p.cfg.Setup.Socket) // left by one that was killed
	child := exec.Command(p.cfg.Argv[0], p.cfg.Argv[1:]...)
	child.Stderr = p.cfg.Stderr
	// Half of the processors at most: a busy loop of the library must not starve the gateway.
	child.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(max(1, runtime.GOMAXPROCS(0)/2)))
	stdin, err := child.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	p.starts.Inc()
	ended := make(chan struct{})
	defer close(ended)
	go stopWith(ctx, ended, stdin, child.Process, p.cfg.Setup.DrainTimeout+stopGrace)
	_ = json.NewEncoder(stdin).Encode(p.cfg.Setup) // Wait notices a child that has exited
	p.follow(stdout)
	if err := child.Wait(); err != nil {
		return err
	}
	return errors.New("it has ended by itself")
}

// stopWith ends the child when ctx is done: by its lifeline, and if it does not heed that, by force.
func stopWith(ctx context.Context, ended <-chan struct{}, lifeline io.Closer, child *os.Process, grace time.Duration) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	_ = lifeline.Close()
	select {
	case <-ended:
	case <-time.After(grace):
		_ = child.Kill()
	}
}

// follow reads what the child tells of itself, until it ends. What the library prints is none of it.
func (p *Process) follow(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var s status
		if json.Unmarshal(lines.Bytes(), &s) != nil || !s.Ready {
			continue
		}
		p.connections.Store(int64(s.Connections))
		p.open.Set(float64(s.Connections))
	}
	_, _ = io.Copy(io.Discard, stdout) // a line that is too long must not block the child
}

// Close removes what New has made. Run must have returned.
func (p *Process) Close() error {
	p.proxy.close()
	return os.RemoveAll(p.dir)
}
