package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"
)

// underWay is the maximum number of concurrent handshakes.
const underWay = 100

// pool holds all connections of a stage. One goroutine, its loop, owns them; others access them through do.
type pool struct {
	poller  *poller
	clients []*client // all clients, including disconnected ones
	byFD    []*client
	dials   []dial
	pending int // handshakes in progress
	buffer  []byte
	trial   *trial
	asks    chan func()
	stopped chan struct{}
	ended   chan struct{}
	err     error // why the loop ended; read it after ended
	fault   error // the first error of a client
	closed  atomic.Int64
}

// dial is a connection to establish.
type dial struct {
	to    netip.AddrPort
	hello *hello
	room  int
	group *group
}

// group is the state of the connections of one call of connect.
type group struct {
	open   int // connections in progress
	joined int
	done   chan struct{}
}

func (g *group) settle(joined bool) {
	if joined {
		g.joined++
	}
	if g.open--; g.open == 0 {
		close(g.done)
	}
}

func newPool() (*pool, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	f := &pool{
		poller:  p,
		buffer:  make([]byte, 64<<10),
		asks:    make(chan func()),
		stopped: make(chan struct{}),
		ended:   make(chan struct{}),
	}
	go f.loop()
	return f, nil
}

// stop closes all connections and returns when the loop has ended.
func (f *pool) stop() {
	close(f.stopped)
	<-f.ended
}

// do runs ask in the loop and returns when it has run; it returns false if the loop has ended.
func (f *pool) do(ask func()) bool {
	ran := make(chan struct{})
	select {
	case f.asks <- func() { ask(); close(ran) }:
		<-ran
		return true
	case <-f.ended:
		return false
	}
}

// connect opens connections and returns how many joined their rooms before ctx ended, and how long that took.
func (f *pool) connect(ctx context.Context, dials []dial) (joined int, took time.Duration, err error) {
	if len(dials) == 0 {
		return 0, 0, nil
	}
	g := &group{open: len(dials), done: make(chan struct{})}
	for i := range dials {
		dials[i].group = g
	}
	began := time.Now()
	if !f.do(func() { f.dials = append(f.dials, dials...) }) {
		return 0, 0, f.err
	}
	select {
	case <-g.done:
	case <-ctx.Done():
	case <-f.ended:
		return 0, 0, f.err
	}
	took = time.Since(began)
	f.do(func() { joined, err = g.joined, f.fault })
	return joined, took, err
}

func (f *pool) loop() {
	defer close(f.ended)
	defer f.closeAll()
	for {
		select {
		case <-f.stopped:
			return
		case ask := <-f.asks:
			ask()
			continue
		default:
		}
		f.dialMore()
		ready, err := f.poller.wait(2 * time.Millisecond)
		if err != nil {
			f.err = fmt.Errorf("waiting for sockets: %w", err)
			return
		}
		for _, r := range ready {
			f.serve(r)
		}
	}
}

func (f *pool) closeAll() {
	for _, c := range f.clients {
		if c.state != gone {
			f.poller.drop(c.fd)
		}
	}
	f.poller.close()
}

func (f *pool) dialMore() {
	for ; f.pending < underWay && len(f.dials) > 0; f.dials = f.dials[1:] {
		d := f.dials[0]
		// Several source addresses avoid running out of ports.
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + len(f.clients)%8)}), 0)
		fd, err := f.poller.dial(from, d.to)
		if err != nil {
			f.noteFault(fmt.Errorf("dialling: %w", err))
			d.group.settle(false)
			continue
		}
		c := &client{fd: fd, index: len(f.clients), room: d.room, group: d.group, hello: d.hello}
		f.clients = append(f.clients, c)
		for len(f.byFD) <= fd {
			f.byFD = append(f.byFD, nil)
		}
		f.byFD[fd] = c
		f.pending++
	}
}

func (f *pool) serve(r readiness) {
	c := f.byFD[r.fd]
	if c == nil || c.state == gone {
		return
	}
	var err error
	if r.writable || c.state == dialing {
		err = f.upgrade(c)
	} else {
		err = f.receive(c)
	}
	if err != nil {
		f.lose(c, err)
	}
}

func (f *pool) upgrade(c *client) error {
	if err := f.poller.connected(c.fd); err != nil {
		return err
	}
	c.state = upgrading
	return f.poller.write(c.fd, c.hello.request)
}

func (f *pool) receive(c *client) error {
	n, err := f.poller.read(c.fd, f.buffer)
	if err != nil {
		return err
	}
	if n == 0 {
		return errClosed
	}
	before := c.state
	out, err := c.read(f.buffer[:n], f.event)
	if err != nil {
		return err
	}
	if c.state == joined && before != joined {
		f.pending--
		c.group.settle(true)
	}
	if out == nil {
		return nil
	}
	return f.poller.write(c.fd, out)
}

func (f *pool) event(c *client, packet []byte) {
	if f.trial != nil {
		f.trial.note(c, packet)
	}
}

// lose drops a client.
func (f *pool) lose(c *client, err error) {
	if c.state != joined {
		f.pending--
		c.group.settle(false)
	}
	c.state = gone
	f.byFD[c.fd] = nil
	f.poller.drop(c.fd)
	f.closed.Add(1)
	f.noteFault(err)
}

func (f *pool) noteFault(err error) {
	if f.fault == nil {
		f.fault = err
	}
}
