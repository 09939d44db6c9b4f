// Package needs lets a test say what it needs of the machine. `make test` (go test -short) leaves such tests to
// `make test-all`, which runs every package that imports this one.
package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Program returns the path of a program that the tests do not build.
func Program(t testing.TB, name string) (path string) {
	t.Helper()
	Long(t)
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name)
	}
	return path
}

// Packages returns the folder of the repository's npm packages, and the path of Node.js.
func Packages(t testing.TB) (folder, node string) {
	t.Helper()
	node = Program(t, "node")
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		folder = filepath.Join(dir, "node_modules")
		if _, err := os.Stat(filepath.Join(folder, "socket.io-client")); err == nil {
			return folder, node
		}
	}
	Missing(t, "node_modules (npm ci in the repository's root)")
	return "", ""
}

// FUSE is for tests that mount a file system of their own. It skips them, also in CI, where the kernel or the sandbox
// does not allow that: no package brings it.
func FUSE(t testing.TB) {
	t.Helper()
	Long(t)
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip("needs /dev/fuse: power cuts are not tested here")
	}
	device.Close()
	if _, err := exec.LookPath("fusermount3"); err != nil && !mayMount() {
		t.Skip("needs fusermount3, or the right to mount: power cuts are not tested here")
	}
}

// mayMount reports whether the process has the capability CAP_SYS_ADMIN; see capabilities(7) and proc(5).
func mayMount() bool {
	const sysAdmin = 21
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "CapEff:\t")
	line, _, _ := strings.Cut(rest, "\n")
	effective, err := strconv.ParseUint(line, 16, 64)
	return err == nil && effective>>sysAdmin&1 == 1
}

// Long leaves a test to `make test-all`.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs in make test-all")
	}
}

// Missing skips a test on a machine without what it needs, and fails it in CI.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing: install it to run this test", what)
	}
	t.Skipf("%s is missing: install it to run this test", what)
}
