package e2e

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// cuttable is a disk that forgets what was not synced when its power is cut (testkit/engines/cutdisk).
type cuttable struct {
	*child
	commands io.Writer
	mount    string
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
	_, err := fmt.Fprintln(d.commands, strings.TrimSpace("cut "+seed))
	check(t, err)
	lines, err := d.await("ok")
	check(t, err)
	t.Logf("cut %s: %s, of %d files", seed, lines[len(lines)-1], len(lines)-1)
}
