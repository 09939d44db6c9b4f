package main

import (
	"errors"
	"net/netip"
	"syscall"
	"time"
)

// poller watches many sockets from one loop. The Go runtime's own poller would cost a goroutine, and a wake-up of it per read, for each.
type poller struct {
	fd     int
	events [512]syscall.EpollEvent
	ready  []readiness
}

// readiness says that a socket can be read (or has failed), or that its connect has ended.
type readiness struct {
	fd       int
	writable bool
}

func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	return &poller{fd: fd}, err
}

func (p *poller) close() { _ = syscall.Close(p.fd) }

// dial begins to connect and reports the socket as writable when that has ended.
func (p *poller) dial(from, to netip.AddrPort) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := p.connect(fd, from, to); err != nil {
		_ = syscall.Close(fd)
		return 0, err
	}
	return fd, nil
}

func (p *poller) connect(fd int, from, to netip.AddrPort) error {
	const bindAddressNoPort = 24 // IP_BIND_ADDRESS_NO_PORT: the port is chosen when its other end is known
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, bindAddressNoPort, 1); err != nil {
		return err
	}
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		return err
	}
	// Closing resets, so that thousands of ports do not stay taken for a minute.
	if err := syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}); err != nil {
		return err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: from.Addr().As4()}); err != nil {
		return err
	}
	err := syscall.Connect(fd, &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
	if err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		return err
	}
	return syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLOUT, Fd: int32(fd)})
}

// connected returns what became of a dial and watches for input from now on.
func (p *poller) connected(fd int) error {
	code, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
	if err != nil {
		return err
	}
	if code != 0 {
		return syscall.Errno(code)
	}
	return syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_MOD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

// wait returns the sockets that are ready, none when none is within d. The answer holds until the next call.
func (p *poller) wait(d time.Duration) ([]readiness, error) {
	n, err := syscall.EpollWait(p.fd, p.events[:], int(d.Milliseconds()))
	if err != nil && !errors.Is(err, syscall.EINTR) {
		return nil, err
	}
	p.ready = p.ready[:0]
	for _, e := range p.events[:max(n, 0)] {
		p.ready = append(p.ready, readiness{fd: int(e.Fd), writable: e.Events&syscall.EPOLLOUT != 0})
	}
	return p.ready, nil
}

// read returns 0 without an error when the other side has closed.
func (p *poller) read(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

// write sends b whole. What the generator sends is small and rare: a socket that does not take it at once is broken.
func (p *poller) write(fd int, b []byte) error {
	n, err := syscall.Write(fd, b)
	if err == nil && n < len(b) {
		return errors.New("the socket takes no more")
	}
	return err
}

func (p *poller) drop(fd int) { _ = syscall.Close(fd) }
