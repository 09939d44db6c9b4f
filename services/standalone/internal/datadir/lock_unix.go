//go:build unix

package datadir

import (
	"os"
	"syscall"
)

func take(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
