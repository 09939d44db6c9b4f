// Package burn repeats a test on busy processors.
package burn

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
)

// burner keeps a processor busy until the process $1 has exited.
const burner = `while kill -0 "$1"; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done`

// times is how often a test is repeated, until it fails.
const times = 200

// Repeat repeats a test on busy processors, in the long form of the tests only.
func Repeat(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	if os.Getenv("PARLEY_FAULTS") != "long" {
		t.Skip("the long form: PARLEY_FAULTS=long")
	}
	busy(t)
	for n := range times {
		if !t.Run(fmt.Sprint(n+1), run) {
			return
		}
	}
}

// busy keeps all processors busy until the test ends, with two processes for each, so that goroutines are
// scheduled late.
func busy(t *testing.T) {
	t.Helper()
	for range 2 * runtime.NumCPU() {
		command := exec.Command("sh", "-c", burner, "burner", strconv.Itoa(os.Getpid()))
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
		})
	}
}
