// Package datadir is the data folder of a standalone Parley: its permissions and its lock.
package datadir

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Dir is a data folder that belongs to this process until Close.
type Dir struct {
	path string
	lock *os.File
}

// Open creates the folder if it is missing and locks it for this process: two servers on the same streams
// would destroy them. The lock ends with the process, also after a crash.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the data folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the data folder's lock: %w", err)
	}
	if err := take(lock); err != nil {
		defer lock.Close()
		const inUse = "%s is in use by another standalone%s; stop it or set PARLEY_DATA_DIR"
		return nil, fmt.Errorf(inUse, path, holder(lock))
	}
	d := &Dir{path: path, lock: lock}
	if err := d.sign(); err != nil {
		d.Close()
		return nil, fmt.Errorf("writing the data folder's lock: %w", err)
	}
	return d, nil
}

// sign writes the id of this process into the lock, for the error message of another process.
func (d *Dir) sign() error {
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	_, err := d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder names the process in the lock file; empty if there is none.
func holder(lock *os.File) string {
	var content [20]byte
	n, _ := lock.ReadAt(content[:], 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content[:n])))
	if err != nil || pid <= 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d: kill %d)", pid, pid)
}

// Path returns the path of name inside the folder.
func (d *Dir) Path(name ...string) string { return filepath.Join(append([]string{d.path}, name...)...) }

// Absolute is Path as an absolute path.
func (d *Dir) Absolute(name string) (string, error) { return filepath.Abs(d.Path(name)) }

// Close unlocks the folder.
func (d *Dir) Close() { d.lock.Close() }
