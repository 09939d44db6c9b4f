package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/testkit/bustest"
)

// limit bounds every wait, far above the time that any of them takes on an idle machine.
const limit = 30 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	closeShared()
	if err := goleak.Find(bustest.LeftByNATS()...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "left running:", err)
		code = 1
	}
	os.Exit(code)
}

// shared has the resources of all tests. After the last test it closes them in the opposite order of opening.
var shared struct {
	sync.Mutex
	closers []func()
}

func closeLater(f func()) {
	shared.Lock()
	defer shared.Unlock()
	shared.closers = append(shared.closers, f)
}

func closeShared() {
	for i := len(shared.closers) - 1; i >= 0; i-- {
		shared.closers[i]()
	}
}

// root returns the repository's folder.
var root = sync.OnceValue(func() string {
	path, err := filepath.Abs("../../..")
	if err != nil {
		panic(err)
	}
	return path
})

// builtPrograms is a folder with all programs, built with the tag nemesis: then nothing is built.
var builtPrograms = os.Getenv("PARLEY_BIN")

// bin builds all programs of the tests, once.
var bin = sync.OnceValues(func() (string, error) {
	if builtPrograms != "" {
		return builtPrograms, nil
	}
	dir, err := os.MkdirTemp("", "parley-e2e-bin")
	if err != nil {
		return "", err
	}
	closeLater(func() { os.RemoveAll(dir) })
	if err := buildWidget(); err != nil {
		return "", err
	}
	return dir, build(dir, append(serviceCommands(),
		servicesPath+"standalone", servicesPath+"parleyctl/cmd/parleyctl", "github.com/nats-io/nats-server/v2",
		"github.com/parley-chat/parley/testkit/engines/ferretdb/cmd/ferretdb",
		"github.com/parley-chat/parley/testkit/engines/cutdisk/cmd/cutdisk",
	)...)
})

const servicesPath = "github.com/parley-chat/parley/services/"

// serviceCommands returns the packages of the services' programs.
func serviceCommands() (packages []string) {
	for _, name := range []string{"client-api", "widget-api", "socket-gateway", "processor", "panel"} {
		packages = append(packages, servicesPath+name+"/cmd/"+name)
	}
	return packages
}

// build builds programs into a folder. Flags of the build may precede the packages.
func build(dir string, packages ...string) error {
	build := exec.Command("go", append([]string{"build", "-ldflags=-s -w", "-o", dir + "/"}, packages...)...)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, out)
	}
	return nil
}

// buildWidget builds the assets as `make assets` does, so that the tests also run by themselves.
func buildWidget() error {
	if _, err := os.Stat(filepath.Join(root(), "node_modules/esbuild")); errors.Is(err, os.ErrNotExist) {
		return nil // tests that need it report it
	}
	build := exec.Command("make", "--silent", "assets")
	build.Dir = root()
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the widget: %w\n%s", err, out)
	}
	return nil
}

func program(t testing.TB, name string) string {
	t.Helper()
	dir, err := bin()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// child is a process of the tests.
type child struct {
	name   string
	cmd    *exec.Cmd
	lines  chan string // its stdout, until it ends
	stderr *tail
	ended  chan struct{}
}

// spawn starts a program with settings (NAME=value) and no other Parley variables in its environment.
func spawn(name string, settings []string, path string, args ...string) (*child, error) {
	return start(name, settings, exec.Command(path, args...))
}

// spawnWithInput is spawn with a pipe to the program's stdin.
func spawnWithInput(name string, settings []string, path string, args ...string) (c *child, input io.Writer, err error) {
	cmd := exec.Command(path, args...)
	if input, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	c, err = start(name, settings, cmd)
	return c, input, err
}

func start(name string, settings []string, cmd *exec.Cmd) (*child, error) {
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}, settings...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c := &child{name: name, cmd: cmd, lines: make(chan string, 4096), stderr: new(tail), ended: make(chan struct{})}
	cmd.Stderr = c.stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go c.follow(stdout)
	return c, nil
}

func (c *child) follow(stdout io.Reader) {
	defer close(c.ended)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		select {
		case c.lines <- lines.Text():
		default: // no reader any more
		}
	}
	close(c.lines)
	_ = c.cmd.Wait() // the exit code is in the state
}

// await reads lines until one has the prefix, and returns all of them.
func (c *child) await(prefix string) ([]string, error) { return c.awaitFor(prefix, limit) }

// awaitFor is await with another limit, for commands that build first.
func (c *child) awaitFor(prefix string, limit time.Duration) ([]string, error) {
	timeout := time.After(limit)
	var seen []string
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				<-c.ended
				return seen, fmt.Errorf("%s ended with code %d:\n%s", c.name, c.code(), c.stderr)
			}
			seen = append(seen, line)
			if strings.HasPrefix(line, prefix) {
				return seen, nil
			}
		case <-timeout:
			return seen, fmt.Errorf("%s did not print %q in time:\n%s", c.name, prefix, c.stderr)
		}
	}
}

// code returns the exit code of an ended process; -1 after a signal.
func (c *child) code() int { return c.cmd.ProcessState.ExitCode() }

// stop sends SIGTERM and returns the exit code.
func (c *child) stop() (int, error) { return c.end(syscall.SIGTERM) }

// kill ends the process with SIGKILL.
func (c *child) kill() error {
	_, err := c.end(syscall.SIGKILL)
	return err
}

// end sends a signal (0: none) and returns the exit code when the process has ended.
func (c *child) end(signal syscall.Signal) (int, error) {
	if err := c.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, fmt.Errorf("ending %s: %w", c.name, err)
	}
	select {
	case <-c.ended:
		return c.code(), nil
	case <-time.After(limit):
		c.stderr.keepAll()
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // a Go program prints what its goroutines wait for
		select {
		case <-c.ended:
		case <-time.After(limit):
			_ = c.cmd.Process.Kill()
			<-c.ended
		}
		return 0, fmt.Errorf("%s did not stop in time:\n%s", c.name, c.stderr)
	}
}

// stopAtEnd stops the process when the test ends, and logs its output if the test failed.
func (c *child) stopAtEnd(t testing.TB) {
	t.Cleanup(func() {
		code, err := c.stop()
		if err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s (exit code %d) wrote:\n%s", c.name, code, c.stderr)
		}
	})
}

// tail keeps the end of a process's output.
type tail struct {
	sync.Mutex
	kept []byte
	all  bool      // keep everything
	file io.Writer // gets everything; nil: there is none
}

// copyTo lets a file have everything, also what was written before.
func (l *tail) copyTo(file io.Writer) error {
	l.Lock()
	defer l.Unlock()
	l.file = file
	_, err := file.Write(l.kept)
	return err
}

// keepAll keeps everything from now on.
func (l *tail) keepAll() {
	l.Lock()
	defer l.Unlock()
	l.all = true
}

func (l *tail) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	const most = 16 << 10
	if l.file != nil {
		_, _ = l.file.Write(p) // the process goes on without its log
	}
	l.kept = append(l.kept, p...)
	if over := len(l.kept) - most; over > 0 && !l.all {
		l.kept = append(l.kept[:0], l.kept[over:]...)
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.Lock()
	defer l.Unlock()
	return string(l.kept)
}

// rounds is how often faults are repeated: once, and more often in the long form of the tests (make test-faults).
func rounds() int {
	if os.Getenv("PARLEY_FAULTS") == "long" {
		return 5
	}
	return 1
}

// eventually polls for a state that no event announces.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not in time: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
