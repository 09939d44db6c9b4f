package ops_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/testkit/nettest"
)

const roleVariable = "OPS_TEST_ROLE"

// TestMain acts as the service's main if a test has started this binary.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(ops.Main("test-service", roles()[role]))
	}
	goleak.VerifyTestMain(m)
}

func roles() map[string]func(context.Context, *slog.Logger) error {
	return map[string]func(context.Context, *slog.Logger) error{
		"graceful": func(ctx context.Context, log *slog.Logger) error {
			log.Info("up")
			log.Debug("hidden")
			<-ctx.Done()
			log.Info("stopped")
			return nil
		},
		"canceled": func(ctx context.Context, log *slog.Logger) error {
			log.Info("up")
			<-ctx.Done()
			return fmt.Errorf("consuming: %w", ctx.Err())
		},
		"stuck": func(ctx context.Context, log *slog.Logger) error {
			log.Warn("up")
			<-ctx.Done()
			log.Warn("stopping")
			select {}
		},
		"failing": func(context.Context, *slog.Logger) error {
			return errors.New("configuration: A is required\nB is wrong")
		},
		"panicked": func(_ context.Context, log *slog.Logger) error { log.Info("last words"); panic("boom") },
	}
}

// process is this test binary in one of its roles.
type process struct {
	cmd    *exec.Cmd
	stderr *bufio.Reader
}

func start(t *testing.T, role string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // a hanging process fails its test
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "LOG_LEVEL=")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &process{cmd: cmd, stderr: bufio.NewReader(stderr)}
}

func (p *process) awaitLine(t *testing.T, part string) string {
	t.Helper()
	for {
		line, err := p.stderr.ReadString('\n')
		if strings.Contains(line, part) {
			return line
		}
		if err != nil {
			t.Fatalf("stderr ended with %v, want a line with %q", err, part)
		}
	}
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end waits for the process and returns the rest of its stderr.
func (p *process) end(t *testing.T) (string, *os.ProcessState) {
	t.Helper()
	rest, err := io.ReadAll(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // the exit state has the result
	return string(rest), p.cmd.ProcessState
}

func TestMainStopsAtASignal(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := start(t, "graceful")
		line := p.awaitLine(t, `"up"`)
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil || record["service"] != "test-service" || record["level"] != "INFO" {
			t.Errorf("log line: got %q, want JSON with service and level", line)
		}
		p.signal(t, s)
		rest, state := p.end(t)
		if state.ExitCode() != 0 {
			t.Errorf("exit code after %v: got %d, want 0", s, state.ExitCode())
		}
		if !strings.Contains(rest, `"stopped"`) || strings.Contains(rest, "hidden") {
			t.Errorf("log after %v: got %q, want the last line flushed and no debug line", s, rest)
		}
	}
}

func TestMainTreatsItsOwnCancellationAsSuccess(t *testing.T) {
	t.Parallel()
	p := start(t, "canceled")
	p.awaitLine(t, `"up"`)
	p.signal(t, syscall.SIGTERM)
	if rest, state := p.end(t); state.ExitCode() != 0 || rest != "" {
		t.Errorf("got exit code %d and %q, want 0 and nothing", state.ExitCode(), rest)
	}
}

func TestMainExitsAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	p := start(t, "stuck")
	p.awaitLine(t, `"up"`)
	p.signal(t, syscall.SIGTERM)
	p.awaitLine(t, `"stopping"`)
	p.signal(t, syscall.SIGTERM)
	_, state := p.end(t)
	if want := 128 + int(syscall.SIGTERM); state.ExitCode() != want {
		t.Errorf("exit code: got %d, want %d of the second signal", state.ExitCode(), want)
	}
}

func TestMainReportsAnErrorInOneLine(t *testing.T) {
	t.Parallel()
	rest, state := start(t, "failing").end(t)
	if want := "test-service: configuration: A is required; B is wrong\n"; rest != want || state.ExitCode() != 1 {
		t.Errorf("got %q and exit code %d, want %q and 1", rest, state.ExitCode(), want)
	}
}

func TestMainKeepsTheLogOfAPanic(t *testing.T) {
	t.Parallel()
	rest, state := start(t, "panicked").end(t)
	if !strings.Contains(rest, "last words") || !strings.Contains(rest, "boom") || state.ExitCode() != 2 {
		t.Errorf("got %q and exit code %d, want the log, the panic and 2", rest, state.ExitCode())
	}
}

// serve runs a server and returns its base URL; the test's cleanup stops it and waits.
func serve(t *testing.T, cfg ops.Config) (string, *ops.Server) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listener = ln
	server := ops.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + ln.Addr().String(), server
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

func TestServerShowsHealthAndMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "parley_test_total", Help: "A test."})
	registry.MustRegister(counter)
	counter.Add(3)
	url, _ := serve(t, ops.Config{Service: "s", Gatherer: registry})
	for path, want := range map[string]string{
		"/healthz": `{"service":"s","status":"ok"}`,
		"/readyz":  `{"service":"s","status":"ok"}`,
		"/metrics": "parley_test_total 3",
	} {
		if status, body := get(t, url+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("GET %s: got %d %q, want 200 and %q", path, status, body, want)
		}
	}
	for _, path := range []string{"/other", "/debug/pprof/", "/debug/pprof/cmdline"} {
		if status, _ := get(t, url+path); status != http.StatusNotFound {
			t.Errorf("GET %s: got %d, want 404", path, status)
		}
	}
}

// Profiles are served only if configured, on a separate loopback address.
func TestProfilesAreOptInAndLocal(t *testing.T) {
	t.Parallel()
	addr := nettest.Addr(t)
	url, _ := serve(t, ops.Config{Service: "s", PprofAddr: addr})
	if status, _ := get(t, url+"/healthz"); status != http.StatusOK {
		t.Fatalf("got %d from /healthz", status)
	}
	if status, body := get(t, "http://"+addr+"/debug/pprof/cmdline"); status != http.StatusOK || !strings.Contains(body, os.Args[0]) {
		t.Errorf("got %d %q, want the command line", status, body)
	}
	if status, _ := get(t, url+"/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("on OPS_ADDR: got %d, want 404", status)
	}
	if err := ops.New(ops.Config{Addr: "127.0.0.1:0", PprofAddr: ":0"}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("on every address: got %v, want a refusal", err)
	}
}

func TestVerboseReadinessNamesEachDependency(t *testing.T) {
	t.Parallel()
	fine := func(context.Context) error { return nil }
	url, server := serve(t, ops.Config{Service: "s", Checks: []ops.Check{
		{Name: "nats", Check: fine},
		{Name: "mongodb", Check: func(context.Context) error { return errors.New("no reachable servers") }},
		{Name: "redis", Check: func(context.Context) error { panic("oops") }},
	}, Warnings: func() []string { return []string{"messages were lost"} }})
	status, body := get(t, url+"/readyz?verbose")
	want := `{"service":"s","status":"unavailable","dependencies":{"mongodb":"no reachable servers","nats":"ok","redis":"panic: oops"},` +
		`"warnings":["messages were lost"]}`
	if status != http.StatusServiceUnavailable || body != want {
		t.Errorf("readyz: got %d %s, want 503 %s", status, body, want)
	}
	if status, _ := get(t, url+"/healthz"); status != http.StatusOK {
		t.Errorf("healthz with unavailable dependencies: got %d, want 200", status)
	}
	server.SetStopping()
	if status, body := get(t, url+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, `"status":"stopping"`) {
		t.Errorf("readyz when stopping: got %d %s, want 503 and stopping", status, body)
	}
}

// A replica is ready once each dependency has been usable, and stays ready during an outage, which affects all
// replicas.
func TestReadinessWaitsForDependenciesOnce(t *testing.T) {
	t.Parallel()
	var nats, store atomic.Bool
	check := func(up *atomic.Bool) func(context.Context) error {
		return func(context.Context) error {
			if !up.Load() {
				return errors.New("away")
			}
			return nil
		}
	}
	server := ops.New(ops.Config{Service: "s", Gatherer: prometheus.NewRegistry(), Checks: []ops.Check{
		{Name: "nats", Check: check(&nats)},
		{Name: "store", Check: check(&store)},
		{Name: "redis", Check: check(new(atomic.Bool)), Optional: true},
	}})
	ask := func(path string) (int, string) {
		rec := httptest.NewRecorder()
		server.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		return rec.Code, strings.TrimSpace(rec.Body.String())
	}
	for _, step := range []struct {
		nats, store bool
		path        string
		status      int
		body        string
	}{
		{false, false, "/readyz", 503, `{"service":"s","status":"unavailable","dependencies":{"nats":"away","redis":"away","store":"away"}}`},
		{true, false, "/readyz", 503, `{"service":"s","status":"unavailable","dependencies":{"nats":"ok","redis":"away","store":"away"}}`},
		{false, true, "/readyz", 200, `{"service":"s","status":"ok","dependencies":{"nats":"away","redis":"away","store":"ok"}}`},
		{false, false, "/readyz", 200, `{"service":"s","status":"ok"}`},
		{false, false, "/readyz?verbose", 200, `{"service":"s","status":"ok","dependencies":{"nats":"away","redis":"away","store":"away"}}`},
		{true, true, "/readyz?verbose", 200, `{"service":"s","status":"ok","dependencies":{"nats":"ok","redis":"away","store":"ok"}}`},
	} {
		nats.Store(step.nats)
		store.Store(step.store)
		if status, body := ask(step.path); status != step.status || body != step.body {
			t.Errorf("%+v: got %d %s", step, status, body)
		}
	}
	_, metrics := ask("/metrics")
	for _, want := range []string{`{dependency="nats",service="s"} 1`, `{dependency="store",service="s"} 1`, `{dependency="redis",service="s"} 0`} {
		if !strings.Contains(metrics, "parley_dependency_up"+want) {
			t.Errorf("got\n%s, want %s", metrics, want)
		}
	}
}

// A running server detects by itself that a dependency has become usable: readiness does not depend on probes.
func TestServerWatchesItsDependencies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		listener := closedListener{make(chan struct{})}
		server := ops.New(ops.Config{Listener: listener, Checks: []ops.Check{{Name: "nats", Check: func(context.Context) error {
			if !up.Load() {
				return errors.New("away")
			}
			return nil
		}}}})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- server.Run(ctx) }()
		time.Sleep(10 * time.Second)
		up.Store(true)
		time.Sleep(2 * time.Second)
		up.Store(false)
		rec := httptest.NewRecorder()
		server.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if rec.Code != http.StatusOK {
			t.Errorf("got %d, want 200: the dependency was usable", rec.Code)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// closedListener accepts no connections.
type closedListener struct{ closed chan struct{} }

func (l closedListener) Accept() (net.Conn, error) { <-l.closed; return nil, net.ErrClosed }
func (l closedListener) Close() error              { close(l.closed); return nil }
func (l closedListener) Addr() net.Addr            { return &net.TCPAddr{} }

func TestStoppingIsNotReady(t *testing.T) {
	t.Parallel()
	server := ops.New(ops.Config{Service: "s"})
	server.SetStopping()
	rec := httptest.NewRecorder()
	server.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if rec.Code != http.StatusServiceUnavailable {
		t.Errorf("readyz when stopping: got %d, want 503", rec.Code)
	}
}

func TestChecksRunConcurrentlyWithATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var checks []ops.Check
		for i := range 3 {
			checks = append(checks, ops.Check{Name: fmt.Sprint("heedful", i), Check: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}})
		}
		checks = append(checks, ops.Check{Name: "heedless", Check: func(context.Context) error { <-release; return nil }})
		rec, started := httptest.NewRecorder(), time.Now()
		ops.New(ops.Config{Checks: checks}).Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if took := time.Since(started); took != 2*time.Second {
			t.Errorf("four hanging checks: got an answer after %v, want 2s", took)
		}
		if rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), `"heedless":"no answer in time"`) {
			t.Errorf("four hanging checks: got %d %s, want 503 and the name", rec.Code, rec.Body)
		}
		close(release)
	})
}

func TestRunReportsAListenError(t *testing.T) {
	t.Parallel()
	if err := ops.New(ops.Config{Addr: "127.0.0.1:99999"}).Run(t.Context()); err == nil {
		t.Error("impossible port: got nil, want an error")
	}
}

// countingWriter counts the writes of a buffer.
type countingWriter struct {
	mu     sync.Mutex
	data   bytes.Buffer
	writes int
	err    error
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	w.data.Write(p)
	return len(p), w.err
}

func (w *countingWriter) got() (string, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.data.String(), w.writes
}

func TestBufferBatchesWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &countingWriter{}
		log := ops.NewLogger(ops.NewBuffer(w), "s", slog.LevelInfo)
		for range 10 {
			log.Info("one")
		}
		if _, writes := w.got(); writes != 0 {
			t.Errorf("writes at once: got %d, want 0", writes)
		}
		time.Sleep(time.Second)
		if text, writes := w.got(); writes != 1 || strings.Count(text, "\n") != 10 {
			t.Errorf("after a second: got %d writes and %d lines, want 1 and 10", writes, strings.Count(text, "\n"))
		}
		log.Info("before")
		log.Warn("trouble")
		if text, writes := w.got(); writes != 2 || !strings.Contains(text, "trouble") {
			t.Errorf("after a warning: got %d writes, want it flushed at once", writes)
		}
		log.With("a", 1).WithGroup("g").Error("more")
		if text, _ := w.got(); !strings.Contains(text, "more") {
			t.Error("after an error of a derived logger: got nothing, want it flushed at once")
		}
	})
}

func TestBufferWritesWhenFullAndKeepsOrder(t *testing.T) {
	t.Parallel()
	w := &countingWriter{}
	b := ops.NewBuffer(w)
	var group sync.WaitGroup
	const writers, lines = 8, 2000
	for g := range writers {
		group.Go(func() {
			for i := range lines {
				if _, err := fmt.Fprintf(b, "%d %d %s\n", g, i, strings.Repeat("x", 50)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	text, writes := w.got()
	next := make([]int, writers)
	for line := range strings.Lines(text) {
		var g, i int
		if _, err := fmt.Sscanf(line, "%d %d", &g, &i); err != nil || i != next[g] {
			t.Fatalf("line %q: want number %d of writer %d", line, next[g], g)
		}
		next[g]++
	}
	for g, n := range next {
		if n != lines {
			t.Errorf("lines of writer %d: got %d, want %d", g, n, lines)
		}
	}
	if writes > writers*lines/100 {
		t.Errorf("writes for %d lines: got %d, want at most one for a hundred", writers*lines, writes)
	}
}

func TestBufferReportsAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	b := ops.NewBuffer(&countingWriter{err: broken})
	if _, err := b.Write([]byte("x")); err != nil {
		t.Errorf("Write: got %v, want nil", err)
	}
	if err := b.Flush(); !errors.Is(err, broken) {
		t.Errorf("Flush: got %v, want %v", err, broken)
	}
	if err := b.Flush(); err != nil {
		t.Errorf("Flush with nothing pending: got %v, want nil", err)
	}
}
