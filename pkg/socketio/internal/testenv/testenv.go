// Package testenv is what tests need of the machine: programs that may be missing, and time.
package testenv

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Patience bounds the wait for an expected event, far above the time that any of them takes.
const Patience = 20 * time.Second

// Eventually polls until reached returns true. It fails the test after [Patience].
func Eventually(t testing.TB, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !reached(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout: %s", what)
		}
	}
}

// Need skips a test if a program is missing; in CI it fails the test. With -short the test is skipped.
func Need(t testing.TB, program string) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs in make test-all")
	}
	if _, err := exec.LookPath(program); err != nil {
		missing(t, program)
	}
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing", what)
	}
	t.Skipf("%s is missing: install it to run this test", what)
}

// Node returns the command that runs a Node.js script of testdata with the repository's npm packages. It
// needs both, like [Need].
func Node(ctx context.Context, t testing.TB, script string, args ...string) *exec.Cmd {
	t.Helper()
	Need(t, "node")
	command := exec.CommandContext(ctx, "node", append([]string{filepath.Join("testdata", script)}, args...)...)
	command.Env = append(os.Environ(), "NODE_PATH="+nodeModules(t))
	return command
}

// RunNode runs a script like [Node] for at most a minute and returns its output.
func RunNode(t testing.TB, script string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := Node(ctx, t, script, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// nodeModules returns the folder of the repository's npm packages.
func nodeModules(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		found := filepath.Join(dir, "node_modules")
		if _, err := os.Stat(filepath.Join(found, "socket.io-client")); err == nil {
			return found
		}
	}
	missing(t, "node_modules (npm ci)")
	return ""
}
