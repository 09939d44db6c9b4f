// Package nettest finds addresses and opens listeners for servers that tests and benchmarks start.
package nettest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Addr is [FreeAddr] for a test.
func Addr(t testing.TB) string {
	t.Helper()
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// Listen listens on a free address of 127.0.0.1 until the test ends.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() }) // already closed by its server, most of the time
	return l
}

// FreeAddr returns a free address on 127.0.0.1, for a server that needs a fixed one or is restarted on it.
// Its port is below the ephemeral range, and so is the one 10,000 above, which Redis uses for a cluster: no
// other process gets them by accident. A process gets each address once: the server for an earlier one may
// not have started yet.
func FreeAddr() (string, error) {
	for range 100 {
		port := 10_000 + rand.IntN(12_000)
		if _, given := handedOut.LoadOrStore(port, true); given {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no port is free")
}

var handedOut sync.Map // ports
