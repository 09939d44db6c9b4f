//go:build !linux

package main

import (
	"errors"
	"net/netip"
	"time"
)

var errNeedsLinux = errors.New("the realtime benchmark reads epoll and /proc, so it needs Linux")

type poller struct{}

type readiness struct {
	fd       int
	writable bool
}

func newPoller() (*poller, error)                                { return nil, errNeedsLinux }
func (*poller) close()                                           {}
func (*poller) dial(netip.AddrPort, netip.AddrPort) (int, error) { return 0, errNeedsLinux }
func (*poller) connected(int) error                              { return errNeedsLinux }
func (*poller) wait(time.Duration) ([]readiness, error)          { return nil, errNeedsLinux }
func (*poller) read(int, []byte) (int, error)                    { return 0, errNeedsLinux }
func (*poller) write(int, []byte) error                          { return errNeedsLinux }
func (*poller) drop(int)                                         {}
