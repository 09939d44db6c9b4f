package legacy

// In the gateway: the life of the child process. ingress.go of the service makes and runs it.

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
	steady       = time.Minute // a child that ran longer is restarted with firstBackoff
	stopGrace    = 5 * time.Second
)

// Config configures a Process.
type Config struct {
	Argv  []string // the child's; nil: this binary with Command
	Setup Setup    // Socket is filled in
	// Maximum number of connections without a valid token, in total and per address, counted over
	// keepRefused. 0: no limit.
	MaxUnauthorized, MaxUnauthorizedPerAddress int
	Address                                    func(*http.Request) string
	Tokens                                     Tokens
	Room                                       func(appID, chatUserID string) string
	Stderr                                     io.Writer             // of the child; nil: os.Stderr
	Registerer                                 prometheus.Registerer // nil: no metrics
	Logger                                     *slog.Logger
}

// Process runs the child and forwards requests to it. New makes it, Run runs it, Close removes its files. Its
// methods are safe for concurrent use; those of a nil Process, of a gateway without old clients, do nothing.
type Process struct {
	cfg         Config
	dir         string
	proxy       *proxy
	connections atomic.Int64
	open        prometheus.Gauge
	starts      prometheus.Counter
}

// New returns a process, which Run starts. It must be closed.
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
		return nil, fmt.Errorf("creating the directory of the legacy server's socket: %w", err)
	}
	p := &Process{
		cfg: cfg, dir: dir,
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_gateway_legacy_connections", Help: "Open connections of old clients (Engine.IO 3).",
		}),
		starts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_gateway_legacy_starts_total",
			Help: "Starts of the server of old clients; more than one: it has crashed.",
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

// Connections returns the child's last reported number of open connections, without those that have no valid token.
func (p *Process) Connections() int {
	if p == nil {
		return 0
	}
	return max(int(p.connections.Load())-p.proxy.unauthorized.count(), 0)
}

// Run runs the child, restarting it with a backoff when it exits, until ctx is done and the child has exited.
func (p *Process) Run(ctx context.Context) {
	if p == nil {
		return
	}
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

// Revoke disconnects the sockets of a visitor whose tokens are revoked. Errors are logged.
func (p *Process) Revoke(ctx context.Context, chatUserID string) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	target := "http://legacy" + revokePath + "?" + url.Values{"chatUserId": {chatUserID}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return // never: the URL is well formed
	}
	response, err := p.proxy.reverse.Transport.RoundTrip(r)
	if err != nil {
		p.cfg.Logger.WarnContext(ctx, "sending a token revocation to the legacy server failed", "error", err)
		return
	}
	_ = response.Body.Close()
}

// live starts the child and returns when it has exited.
func (p *Process) live(ctx context.Context) error {
	_ = os.Remove(p.cfg.Setup.Socket) // left by a killed child
	child := exec.Command(p.cfg.Argv[0], p.cfg.Argv[1:]...)
	child.Stderr = p.cfg.Stderr
	// At most half of the processors: a busy loop in the library must not starve the gateway.
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
	return errors.New("exited with status 0")
}

// stopWith stops the child when ctx is done: it closes the child's standard input and, after grace, kills the child.
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

// follow reads the child's status lines until it exits. Other output, which the library may print, is ignored.
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

// Close removes the socket's directory. Run must have returned.
func (p *Process) Close() error {
	if p == nil {
		return nil
	}
	p.proxy.close()
	return os.RemoveAll(p.dir)
}
