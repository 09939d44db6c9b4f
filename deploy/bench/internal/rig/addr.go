package rig

import "github.com/parley-chat/parley/testkit/nettest"

// FreeAddr is [nettest.FreeAddr]; where there is none the system chooses, and whoever is told so says that nothing answers.
func FreeAddr() string {
	addr, err := nettest.FreeAddr()
	if err != nil {
		return "127.0.0.1:0"
	}
	return addr
}
