package nettest

import "testing"

// A test that requests the addresses of all its servers before it starts one gets different ones.
func TestFreeAddrIsHandedOutOnce(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for range 1000 {
		addr := Addr(t)
		if seen[addr] {
			t.Fatalf("got %s twice", addr)
		}
		seen[addr] = true
	}
}
