package main

import (
	"errors"
	"net/netip"
	"syscall"
	"time"
)

// poller polls many sockets in one loop. The Go runtime's poller would need a goroutine, and a wake-up per read, for
// each.
type poller struct {
	fd     int
	events [512]syscall.EpollEvent
	ready  []readiness
}

// readiness reports that a socket is readable (or has failed), or that its connect has completed.
type readiness struct {
	fd       int
	writable bool
}

func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	return &poller{fd: fd}, err
}

func (p *poller) close() { _ = syscall.Close(p.fd) }

// dial starts to connect and reports the socket as writable when that has completed.
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
	const bindAddressNoPort = 24 // IP_BIND_ADDRESS_NO_PORT: chooses the port at connect
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, bindAddressNoPort, 1); err != nil {
		return err
	}
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		return err
	}
	// Closing with a reset avoids TIME_WAIT for thousands of ports.
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

// connected returns the result of a dial and polls for input from now on.
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

// wait returns the sockets that are ready, or none after d. The result is valid until the next call.
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

// read returns 0 without an error if the peer has closed.
func (p *poller) read(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

// write sends b entirely. The generator's output is small and rare: a socket that does not accept it at once is broken.
func (p *poller) write(fd int, b []byte) error {
	n, err := syscall.Write(fd, b)
	if err == nil && n < len(b) {
		return errors.New("short write to the socket")
	}
	return err
}

func (p *poller) drop(fd int) { _ = syscall.Close(fd) }
