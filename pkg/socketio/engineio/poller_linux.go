package engineio

// The poller of idle WebSockets: websocket.go adds connections, and starts a goroutine when one has bytes to
// read.
// On other systems (poller_other.go) each connection has a goroutine.

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// poller watches idle connections with one epoll instance, so that a connection needs a goroutine, and
// its stack, only while it has bytes to read. The runtime's own poller
// would need a blocked goroutine for each connection.
//
// Events are one-shot: after an event, the connection belongs to the goroutine that reads it, until the
// goroutine rearms it.
type poller struct {
	epoll int
	wake  [2]int // a pipe that stops run

	mu    sync.Mutex
	next  int32
	conns map[int32]*wsConn
}

// watched is the poller's state of a connection, guarded by poller.mu.
type watched struct {
	token int32 // 0: not watched
	busy  bool  // a goroutine reads it
	gone  bool  // closed while busy
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

// openWake creates the wake pipe and watches it under token 0.
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
	_, _ = syscall.Write(p.wake[1], []byte{0}) // never blocks: the pipe is empty
}

// run starts a goroutine for each readable connection, until stop.
func (p *poller) run() {
	defer func() { _, _, _ = syscall.Close(p.wake[0]), syscall.Close(p.wake[1]), syscall.Close(p.epoll) }()
	events := make([]syscall.EpollEvent, 128)
	for {
		n, err := syscall.EpollWait(p.epoll, events, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			panic(os.NewSyscallError("epoll_wait", err)) // only for an invalid descriptor
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

// claim marks the connection of a token as busy and returns it.
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

// add starts watching c and reports whether it succeeded.
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
	// The connection is closed or a system limit is reached: a reader goroutine takes over, unless unwatch
	// removed the connection meanwhile, which then no longer counts in wg.
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.conns[event.Fd] != c
	delete(p.conns, event.Fd)
	c.watched = watched{}
	return taken
}

// rearm watches a claimed connection again, or returns false if it has ended.
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
		c.unwatch() // closed meanwhile, or no longer watchable
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

// forget stops watching a connection that the caller has claimed.
func (p *poller) forget(c *wsConn) {
	p.mu.Lock()
	delete(p.conns, c.watched.token)
	p.mu.Unlock()
	c.session.srv.wg.Done()
}

// unwatch ends a closed connection: the poller gets no events for a closed descriptor.
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
