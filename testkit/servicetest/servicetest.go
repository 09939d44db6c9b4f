// Package servicetest runs a service in a test and checks what its binary links. It imports no engine.
package servicetest

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/timetest"
)

// Run calls a service's Run in a goroutine. stop ends it and waits until it has returned nil; it may be
// called again and is called at the end of the test.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: got %v, want nil", err)
			}
		case <-time.After(timetest.Limit):
			t.Error("Run did not return")
		}
	})
	t.Cleanup(stop)
	return stop
}

// LinksNoEngine checks that the binary of the service in this directory links none of the engines that tests
// embed, nor the modules that further names.
func LinksNoEngine(t testing.TB, further ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/...").Output()
	if err != nil {
		t.Fatalf("listing the packages of the binary: %v", err)
	}
	for _, engine := range append(further, "nats-io/nats-server", "FerretDB", "alicebob/miniredis") {
		if strings.Contains(string(out), engine) {
			t.Errorf("the binary links %s, want it in tests only", engine)
		}
	}
}
