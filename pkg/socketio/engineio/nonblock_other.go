//go:build !unix

package engineio

import "net"

// rawConn is not supported here: all writes are done by the session's writing goroutine.
type rawConn struct{}

func newRawConn(net.Conn, *pools) *rawConn { return nil }

func newRawWrite() *struct{} { return nil }

func (c *rawConn) readReady() (*[]byte, int, error) { panic("unreachable") }

func (c *rawConn) writeNow([]byte) (int, error) { panic("unreachable") }

func (c *rawConn) readNow([]byte) (int, error) { panic("unreachable") }
