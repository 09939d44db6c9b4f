package streamsync

import (
	"errors"
	"os"
	"syscall"
)

// syncData writes a file's contents and length to the disk.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
