package fulldisk

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// Run runs test in its own process, so that the limit affects no other test. t must not be a subtest.
func Run(t *testing.T, test func(*testing.T)) {
	t.Helper()
	const variable = "PARLEY_TEST_DISK_FULL"
	if os.Getenv(variable) != "" {
		test(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), variable+"=1")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("got %v\n%s", err, out)
	}
}

// Limit limits the size of the process's files until end is called.
func Limit(t *testing.T, size uint64) (end func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	set := func(limit syscall.Rlimit) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	set(syscall.Rlimit{Cur: size, Max: before.Max})
	return func() { set(before) }
}
