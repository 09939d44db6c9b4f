//go:build linux || darwin

package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
)

// FreeSpace returns the free bytes of the database's file system and its size.
func (s *Store) FreeSpace(context.Context) (free, size uint64, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(s.path), &disk); err != nil {
		return 0, 0, fmt.Errorf("reading the file system of the database: %w", err)
	}
	block := uint64(disk.Bsize) // positive
	return disk.Bavail * block, disk.Blocks * block, nil
}
