// Package proxy is a TCP proxy between clients and a server of a test that breaks the network between them: it stops
// forwarding, refuses connections, or is slow.
package proxy

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// dialTimeout bounds a connection to a server, which is on the same machine.
const dialTimeout = 5 * time.Second

// Proxy forwards TCP connections to servers in turn. It passes over a server that refuses the connection, as a load
// balancer does.
//
// It begins with Start and ends with the test. Its methods may be called at the same time; a fault ends with the
// function that began it, which may be called repeatedly.
type Proxy struct {
	listener net.Listener
	targets  []string
	turn     atomic.Uint64
	stopped  chan struct{}
	running  sync.WaitGroup

	mu    sync.Mutex               // guards the rest
	open  chan struct{}            // closed while the proxy forwards
	cut   bool                     // connections are refused
	delay time.Duration            // of each chunk of data
	conns map[*connection]struct{} // the open ones
}

// connection is a client's connection and the one to its server.
type connection struct {
	client, server net.Conn
	// What the client or the server sends disappears, until the end of the connection.
	losesRequests, losesAnswers atomic.Bool
}

// close closes both.
func (c *connection) close() {
	c.client.Close()
	c.server.Close()
}

// Start starts a proxy that ends with the test.
func Start(t testing.TB, targets ...string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		listener: listener,
		targets:  targets,
		stopped:  make(chan struct{}),
		open:     make(chan struct{}),
		conns:    map[*connection]struct{}{},
	}
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

// Silence keeps connections, and accepts new ones, but forwards nothing until end is called: it comes late then.
func (p *Proxy) Silence() (end func()) {
	open := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = open
	return sync.OnceFunc(func() { close(open) })
}

// Lose lets what is sent over the present connections disappear, in both directions, for as long as they exist: as when
// a firewall has forgotten them. New connections work.
func (p *Proxy) Lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.losesRequests.Store(true)
		c.losesAnswers.Store(true)
	}
}

// LoseAnswers is Lose for what the servers send: requests have their effects, of which the clients hear nothing.
func (p *Proxy) LoseAnswers() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.losesAnswers.Store(true)
	}
}

// Cut closes all connections and refuses new ones until end is called.
func (p *Proxy) Cut() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		c.close()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cut = false
	}
}

// Delay delays each chunk of data until end is called.
func (p *Proxy) Delay(delay time.Duration) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.delay = 0
	}
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
	server := p.dial()
	if server == nil {
		return
	}
	defer server.Close()
	c := &connection{client: client, server: server}
	if !p.add(c) {
		return
	}
	defer p.remove(c)
	ended := make(chan struct{}, 2)
	p.running.Go(func() { p.forward(server, client, &c.losesRequests, ended) })
	p.running.Go(func() { p.forward(client, server, &c.losesAnswers, ended) })
	select {
	case <-ended:
	case <-p.stopped:
	}
}

// dial connects to the next server that accepts the connection; nil: none does.
func (p *Proxy) dial() net.Conn {
	first := p.turn.Add(1)
	for n := range uint64(len(p.targets)) {
		target := p.targets[(first+n)%uint64(len(p.targets))]
		if server, err := net.DialTimeout("tcp", target, dialTimeout); err == nil {
			return server
		}
	}
	return nil
}

// add notes a connection, unless connections are refused.
func (p *Proxy) add(c *connection) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) remove(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) forward(to, from net.Conn, loses *atomic.Bool, ended chan<- struct{}) {
	defer func() { ended <- struct{}{} }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if !p.pass() {
			return
		}
		if loses.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// pass waits until a chunk may be forwarded. It returns false when the test has ended.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	open, delay := p.open, p.delay
	p.mu.Unlock()
	select {
	case <-open:
	case <-p.stopped:
		return false
	}
	if delay == 0 {
		return true
	}
	select {
	case <-time.After(delay):
		return true
	case <-p.stopped:
		return false
	}
}
