//go:build !unix

package datadir

import "os"

// take cannot lock here; the busy port of the embedded NATS is what is left to stop a second server.
func take(*os.File) error { return nil }
