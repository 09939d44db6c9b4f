// Package proxy is a TCP proxy between a client and a server of a test that can stop forwarding.
package proxy

import (
	"net"
	"sync"
	"testing"
)

// Proxy forwards TCP connections to one address.
type Proxy struct {
	listener net.Listener
	target   string
	stopped  chan struct{}
	running  sync.WaitGroup

	mu   sync.Mutex
	open chan struct{} // closed while the proxy forwards
}

// Start starts a proxy that ends with the test.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, stopped: make(chan struct{}), open: make(chan struct{})}
	close(p.open)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		close(p.stopped)
		listener.Close()
		p.running.Wait()
	})
	return p
}

// Addr returns the address for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Silence keeps connections, and accepts new ones, but forwards nothing until end is called. end may be
// called repeatedly.
func (p *Proxy) Silence() (end func()) {
	open := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = open
	return sync.OnceFunc(func() { close(open) })
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	ended := make(chan struct{}, 2)
	p.running.Go(func() { p.forward(server, client, ended) })
	p.running.Go(func() { p.forward(client, server, ended) })
	select {
	case <-ended:
	case <-p.stopped:
	}
}

func (p *Proxy) forward(to, from net.Conn, ended chan<- struct{}) {
	defer func() { ended <- struct{}{} }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		open := p.open
		p.mu.Unlock()
		select {
		case <-open:
		case <-p.stopped:
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
