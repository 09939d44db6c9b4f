package rig

import "net"

// FreeAddr finds a port that is free now. Nothing else on this machine is starting servers while a benchmark runs.
func FreeAddr() string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer ln.Close()
	return ln.Addr().String()
}
