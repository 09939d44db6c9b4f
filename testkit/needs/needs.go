// Package needs lets a test say what it needs of the machine. `make test` (go test -short) leaves such tests to
// `make test-all`, which runs every package that imports this one.
package needs

import (
	"os"
	"os/exec"
	"path/filepath"
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

// FUSE is for tests that mount a file system of their own.
func FUSE(t testing.TB) {
	t.Helper()
	Long(t)
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		Missing(t, "/dev/fuse")
	}
	device.Close()
	if os.Getuid() != 0 {
		Program(t, "fusermount3")
	}
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
