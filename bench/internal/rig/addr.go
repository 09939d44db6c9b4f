package rig

import "github.com/parley-chat/parley/testkit/nettest"

// FreeAddr is [nettest.FreeAddr]; if there is no free address, the system chooses a port, and readiness checks then
// fail.
func FreeAddr() string {
	addr, err := nettest.FreeAddr()
	if err != nil {
		return "127.0.0.1:0"
	}
	return addr
}
