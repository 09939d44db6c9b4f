// Package nettest finds addresses for servers that tests and benchmarks start.
package nettest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Addr is [FreeAddr] in a test.
func Addr(t testing.TB) string {
	t.Helper()
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// FreeAddr returns an address on 127.0.0.1 that is free, for a server that has to be told one, or that goes away and comes back to
// it. Its port lies below the range from which systems take ports for those who do not care, and so does the one 10,000 above,
// which Redis takes for a cluster: no other process gets them by accident meanwhile. A process gets each address once: the server of an
// earlier one may not have started yet.
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
