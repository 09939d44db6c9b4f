//go:build unix

package engineio

// Reads and writes that never wait, on the socket of a WebSocket: session_write.go writes in the calling
// goroutine while the socket takes the bytes, websocket.go reads without a goroutine while bytes are there.

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// rawConn does non-blocking reads and writes on a socket that the runtime's poller manages.
type rawConn struct {
	raw   syscall.RawConn
	pools *pools
	read  *rawRead // created by the first readReady
}

// newRawConn returns nil if conn is not a plain socket (TLS, pipes).
func newRawConn(conn net.Conn, pools *pools) *rawConn {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return &rawConn{raw: raw, pools: pools}
}

// rawRead is a blocking read that takes a buffer from the pool only when the socket is readable.
type rawRead struct {
	buffers *sync.Pool
	ready   func(fd uintptr) bool
	buf     *[]byte
	n       int
	err     error
}

func (r *rawRead) attempt(fd uintptr) bool {
	buf := r.buffers.Get().(*[]byte)
	n, err := ignoringEINTR(func() (int, error) { return syscall.Read(int(fd), *buf) })
	if errors.Is(err, syscall.EAGAIN) {
		r.buffers.Put(buf)
		return false
	}
	r.buf = buf
	r.n = n
	r.err = err
	return true
}

// readReady waits until bytes are available and returns them in a buffer of the pool.
func (c *rawConn) readReady() (*[]byte, int, error) {
	if c.read == nil {
		c.read = &rawRead{buffers: &c.pools.reads}
		c.read.ready = c.read.attempt
	}
	r := c.read
	*r = rawRead{buffers: r.buffers, ready: r.ready} // without the last result
	if err := c.raw.Read(r.ready); err != nil {
		return nil, 0, err
	}
	buf := r.buf
	r.buf = nil // the caller returns it to the pool
	err := r.err
	if err == nil && r.n <= 0 {
		err = io.EOF
	}
	return buf, max(r.n, 0), err
}

// rawWrite is one attempt to write or read. It is pooled because syscall.RawConn makes it escape to
// the heap.
type rawWrite struct {
	b       []byte
	n       int
	err     error
	try     func(fd uintptr) bool
	tryRead func(fd uintptr) bool
}

func newRawWrite() *rawWrite {
	w := &rawWrite{}
	w.try = w.attempt
	w.tryRead = w.attemptRead
	return w
}

// release returns w to the pool, without the caller's bytes and the result.
func (w *rawWrite) release(p *pools) {
	*w = rawWrite{try: w.try, tryRead: w.tryRead}
	p.writes.Put(w)
}

func (w *rawWrite) attemptRead(fd uintptr) bool {
	w.n, w.err = ignoringEINTR(func() (int, error) { return syscall.Read(int(fd), w.b) })
	return true
}

// readNow reads available bytes into b, or returns errWouldBlock.
func (c *rawConn) readNow(b []byte) (int, error) {
	w := c.pools.writes.Get().(*rawWrite)
	w.b = b
	err := c.raw.Read(w.tryRead)
	n, readErr := w.n, w.err
	w.release(c.pools)
	switch {
	case err != nil:
		return 0, err
	case errors.Is(readErr, syscall.EAGAIN):
		return 0, errWouldBlock
	case readErr != nil:
		return 0, readErr
	case n <= 0:
		return 0, io.EOF
	}
	return n, nil
}

func (w *rawWrite) attempt(fd uintptr) bool {
	w.n, w.err = ignoringEINTR(func() (int, error) { return syscall.Write(int(fd), w.b) })
	return true
}

// writeNow writes as many bytes as the socket accepts immediately and returns their number.
func (c *rawConn) writeNow(b []byte) (int, error) {
	w := c.pools.writes.Get().(*rawWrite)
	w.b = b
	err := c.raw.Write(w.try)
	if err == nil && !errors.Is(w.err, syscall.EAGAIN) {
		err = w.err
	}
	n := max(w.n, 0)
	w.release(c.pools)
	return n, err
}

// ignoringEINTR repeats a system call that a signal has interrupted.
func ignoringEINTR(fn func() (int, error)) (int, error) {
	for {
		n, err := fn()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
