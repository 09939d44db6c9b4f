package engineio

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// poller watches idle connections with one epoll instance, so that a connection takes a goroutine, and
// with it a stack, only while it has something to read. It runs beside the runtime's own poller, which
// wakes goroutines and so needs one for each connection.
//
// Events are one-shot: after one, the connection belongs to the goroutine that reads it, until that arms
// it again.
type poller struct {
	epoll int
	wake  [2]int // a pipe that ends run

	mu    sync.Mutex
	next  int32
	conns map[int32]*wsConn
}

// watched is what the poller knows of a connection, guarded by poller.mu.
type watched struct {
	token int32 // 0 if the poller does not know the connection
	busy  bool  // a goroutine reads it
	gone  bool  // was closed while busy
}

const epollRead = syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLONESHOT

func newPoller() (*poller, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	p := &poller{epoll: epoll, conns: make(map[int32]*wsConn)}
	if err := p.openWake(); err != nil {
		_ = syscall.Close(epoll)
		return nil, err
	}
	return p, nil
}

// openWake watches a pipe under token 0.
func (p *poller) openWake() error {
	if err := syscall.Pipe2(p.wake[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return os.NewSyscallError("pipe2", err)
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN}
	if err := syscall.EpollCtl(p.epoll, syscall.EPOLL_CTL_ADD, p.wake[0], &event); err != nil {
		_, _ = syscall.Close(p.wake[0]), syscall.Close(p.wake[1])
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

func (p *poller) stop() {
	_, _ = syscall.Write(p.wake[1], []byte{0}) // an empty pipe always takes it
}

// run hands each readable connection to a goroutine until stop.
func (p *poller) run() {
	defer func() { _, _, _ = syscall.Close(p.wake[0]), syscall.Close(p.wake[1]), syscall.Close(p.epoll) }()
	events := make([]syscall.EpollEvent, 128)
	for {
		n, err := syscall.EpollWait(p.epoll, events, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			panic(os.NewSyscallError("epoll_wait", err)) // only a wrong descriptor does this
		}
		for _, event := range events[:max(n, 0)] {
			if event.Fd == 0 {
				return
			}
			if c := p.claim(event.Fd); c != nil {
				go p.serve(c)
			}
		}
	}
}

// claim gives the connection to the caller.
func (p *poller) claim(token int32) *wsConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conns[token]
	if c != nil {
		c.watched.busy = true
	}
	return c
}

// serve reads a claimed connection.
func (p *poller) serve(c *wsConn) {
	err := c.readBurst()
	if err == nil && p.rearm(c) {
		return
	}
	c.ended(err)
	p.forget(c)
}

// add starts to watch c; it reports whether that worked.
func (p *poller) add(c *wsConn) bool {
	p.mu.Lock()
	for p.next++; p.next <= 0 || p.conns[p.next] != nil; p.next++ {
		p.next = max(p.next, 0)
	}
	c.watched = watched{token: p.next}
	p.conns[p.next] = c
	event := syscall.EpollEvent{Events: epollRead, Fd: p.next}
	p.mu.Unlock()
	if p.control(c, syscall.EPOLL_CTL_ADD, event) == nil {
		return true
	}
	// Closed already, or the system's limit is reached: a reader finds out. If the connection was taken out
	// meanwhile, it has been counted out too.
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.conns[event.Fd] != c
	delete(p.conns, event.Fd)
	c.watched = watched{}
	return taken
}

// rearm gives a claimed connection back; it reports false if the connection has ended.
func (p *poller) rearm(c *wsConn) bool {
	p.mu.Lock()
	if c.watched.gone {
		p.mu.Unlock()
		return false
	}
	c.watched.busy = false
	event := syscall.EpollEvent{Events: epollRead, Fd: c.watched.token}
	p.mu.Unlock()
	if err := p.control(c, syscall.EPOLL_CTL_MOD, event); err != nil {
		c.unwatch() // closed in between; if it was not, it cannot be read any more
		c.session.readerEnded(c, err)
		c.conn.Close()
	}
	return true
}

func (p *poller) control(c *wsConn, op int, event syscall.EpollEvent) error {
	var ctlErr error
	err := c.raw.raw.Control(func(fd uintptr) { ctlErr = syscall.EpollCtl(p.epoll, op, int(fd), &event) })
	return errors.Join(err, ctlErr)
}

// forget ends a connection that the caller has claimed.
func (p *poller) forget(c *wsConn) {
	p.mu.Lock()
	delete(p.conns, c.watched.token)
	p.mu.Unlock()
	c.session.srv.wg.Done()
}

// unwatch ends a connection that was closed: a closed descriptor has no events, so the poller would not notice.
func (c *wsConn) unwatch() {
	p := c.session.srv.poller
	if p == nil {
		return
	}
	p.mu.Lock()
	known := c.watched.token != 0 && p.conns[c.watched.token] == c
	idle := known && !c.watched.busy
	if idle {
		delete(p.conns, c.watched.token)
	} else if known {
		c.watched.gone = true
	}
	p.mu.Unlock()
	if idle {
		c.session.srv.wg.Done()
	}
}
