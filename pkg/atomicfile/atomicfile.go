// Package atomicfile writes files that hold secrets, and watches them for changes.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write writes data to path with mode 0600, atomically: data is on disk before the rename, and the rename is
// durable when Write returns. The temporary file always has the same name, so that the next write overwrites
// a secret that a crash has left.
func Write(path string, data []byte) error {
	draft := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".draft")
	err := writeSynced(draft, data)
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(draft)
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = file.Chmod(0o600); err == nil { // a file left by a crash may have another mode
		_, err = file.Write(data)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDir makes a rename durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
