//go:build !unix

package datadir

import "os"

// take cannot lock on this system; only the busy port of the embedded NATS stops a second server.
func take(*os.File) error { return nil }
