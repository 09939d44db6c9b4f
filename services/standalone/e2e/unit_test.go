package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// unit is a process that is started again when it ends by itself, as systemd does. It begins with supervise, and ends
// with the test.
type unit struct {
	name     string
	start    func() (*child, error)
	restarts *atomic.Int64

	mu    sync.Mutex // guards the rest; held while the process starts
	child *child
	off   bool
	ends  []string // how it has ended by itself
}

// supervise starts a process. That it ends by itself fails the test, unless it has read what a stream has lost:
// consumers read a message before it is on the disk, and so before its publisher hears that it is accepted. restarts
// counts that.
func supervise(t *testing.T, name string, restarts *atomic.Int64, start func() (*child, error)) *unit {
	t.Helper()
	u := &unit{name: name, start: start, restarts: restarts}
	check(t, u.run())
	t.Cleanup(func() {
		check(t, u.kill())
		for _, end := range u.takeEnds() {
			t.Errorf("%s ended by itself: %s", name, end)
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, u.child.stderr)
		}
	})
	return u
}

func (u *unit) run() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.off = false
	return u.runLocked()
}

func (u *unit) runLocked() error {
	c, err := u.start()
	if err != nil {
		return err
	}
	u.child = c
	go func() {
		<-c.ended
		u.runAgain(c)
	}()
	return nil
}

// runAgain starts the process again, unless its power is off.
func (u *unit) runAgain(ended *child) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.off || u.child != ended {
		return
	}
	if noticedLoss(ended) {
		u.restarts.Add(1)
	} else {
		u.ends = append(u.ends, fmt.Sprintf("code %d: %s", ended.code(), lastLine(ended.stderr.String())))
	}
	if err := u.runLocked(); err != nil {
		u.ends = append(u.ends, err.Error())
	}
}

// takeEnds returns how the process has ended by itself, each end once.
func (u *unit) takeEnds() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	ends := u.ends
	u.ends = nil
	return ends
}

// kill ends the process at once.
func (u *unit) kill() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.off = true
	return u.child.kill()
}

// stop ends the process as an orchestrator does, and returns its exit code.
func (u *unit) stop() (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.off = true
	return u.child.stop()
}

// signal sends a signal to the process.
func (u *unit) signal(s os.Signal) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.child.cmd.Process.Signal(s)
}

// noticedLoss reports whether a process has ended because a stream has lost messages.
func noticedLoss(ended *child) bool {
	return strings.Contains(lastLine(ended.stderr.String()), "has lost its messages")
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return slices.Concat([]string{""}, lines)[len(lines)]
}
