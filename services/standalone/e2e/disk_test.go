package e2e

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// cuttable is a disk that forgets what was not synced when its power is cut (testkit/engines/cutdisk).
type cuttable struct {
	*child
	mount string

	mu       sync.Mutex // one command at a time
	commands io.Writer
}

// newCuttable mounts a disk. RENAME is the file system's way of renaming.
func newCuttable(t *testing.T, mount string) *cuttable {
	t.Helper()
	check(t, os.MkdirAll(mount, 0o700))
	rename := cmp.Or(os.Getenv("RENAME"), "ordered")
	d := &cuttable{mount: mount}
	var err error
	d.child, d.commands, err = spawnWithInput(
		"cutdisk", nil, program(t, "cutdisk"), "-backing", t.TempDir(), "-mount", mount, "-rename", rename,
	)
	check(t, err)
	d.stopAtEnd(t)
	_, err = d.await("mounted")
	check(t, err)
	return d
}

// cut cuts the power. With a seed the kernel had written some of the files. No file may be open.
func (d *cuttable) cut(t *testing.T, seed string) {
	t.Helper()
	lines, err := d.command(strings.TrimSpace("cut " + seed))
	check(t, err)
	t.Logf("cut %s: %s, of %d files", seed, lines[len(lines)-1], len(lines)-1)
}

// command sends a command of cmd/cutdisk, and returns the lines of its answer.
func (d *cuttable) command(line string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := fmt.Fprintln(d.commands, line); err != nil {
		return nil, err
	}
	return d.await("ok")
}
