package ops_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/ops"
)

// command runs this test binary as a service with a command line.
func command(t *testing.T, opsAddr string, args ...string) (output string, exit int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"=failing", "LOG_LEVEL=", "OPS_ADDR="+opsAddr)
	out, _ := cmd.CombinedOutput() // the exit state has the result
	return string(out), cmd.ProcessState.ExitCode()
}

func TestVersionNeedsNoConfiguration(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"--version", "version"} {
		if out, exit := command(t, "", arg); exit != 0 || out != "test-service "+ops.ReadBuild().String()+"\n" {
			t.Errorf("%s: got exit code %d and %q, want the build", arg, exit, out)
		}
	}
}

func TestUnknownArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"healtcheck"}, {"--help"}, {"healthcheck", "http://127.0.0.1/", "more"}} {
		if out, exit := command(t, "", args...); exit != 2 || !strings.Contains(out, "unknown arguments") {
			t.Errorf("%q: got exit code %d and %q, want 2 and a clear line", args, exit, out)
		}
	}
}

func TestHealthcheckQueriesTheRunningService(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, ops.Config{Service: "test-service"})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{":" + port, "0.0.0.0:" + port, "[::]:" + port, "127.0.0.1:" + port} {
		if out, exit := command(t, addr, "healthcheck"); exit != 0 || out != "" {
			t.Errorf("OPS_ADDR=%s: got exit code %d and %q, want 0", addr, exit, out)
		}
	}
	if out, exit := command(t, "", "healthcheck", url+"/healthz"); exit != 0 {
		t.Errorf("got exit code %d and %q, want the URL queried", exit, out)
	}
	if out, exit := command(t, "", "healthcheck", url+"/nothing"); exit != 1 || !strings.Contains(out, "404") {
		t.Errorf("got exit code %d and %q, want 1 and the status", exit, out)
	}
	if out, exit := command(t, "127.0.0.1:1", "healthcheck"); exit != 1 || strings.Count(out, "\n") != 1 {
		t.Errorf("got exit code %d and %q, want 1 and one line", exit, out)
	}
}

func TestBuildIsAMetric(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	build := ops.Build{Version: "v1.2.3", Commit: "abc", Date: "2026-01-02T03:04:05Z", Go: "go1.26"}
	registry.MustRegister(build.Metric("test-service"))
	url, _ := serve(t, ops.Config{Gatherer: registry})
	status, body := get(t, url+"/metrics")
	const want = `parley_build_info{commit="abc",date="2026-01-02T03:04:05Z",goversion="go1.26",service="test-service",version="v1.2.3"} 1`
	if status != http.StatusOK || !strings.Contains(body, want) {
		t.Errorf("got %d %s, want %s", status, body, want)
	}
}
