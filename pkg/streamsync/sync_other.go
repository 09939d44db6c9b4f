//go:build !linux

package streamsync

import "os"

// syncData writes a file to the disk.
func syncData(f *os.File) error { return f.Sync() }
