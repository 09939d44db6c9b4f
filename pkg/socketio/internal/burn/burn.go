// Package burn keeps processors busy during a test.
package burn

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
)

// burner keeps a processor busy until the process $1 has exited.
const burner = `while kill -0 "$1"; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done`

// Processors keeps all processors busy until the test ends, with two processes for each, so that goroutines are scheduled late.
func Processors(t *testing.T) {
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
