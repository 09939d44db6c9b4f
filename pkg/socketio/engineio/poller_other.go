//go:build !linux

package engineio

// poller exists on Linux only; elsewhere each WebSocket has a goroutine.
type poller struct{}

type watched struct{}

func newPoller() (*poller, error) { return nil, nil }

func (p *poller) run() {}

func (p *poller) stop() {}

func (p *poller) add(*wsConn) bool { return false }

func (c *wsConn) unwatch() {}
