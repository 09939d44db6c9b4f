package writegate

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// stopGrace is how long a request that the engine is working on may take once the gate closes.
const stopGrace = 5 * time.Second

// Gate is the proxy, from [Open] to [Gate.Close]. It is safe for concurrent use.
//
// Each client connection has one engine connection and one goroutine. A request is taken in whole before the lock is taken,
// and a reply is taken in whole before the lock is given back and the client gets it: a client that is slow, or dies, never
// holds the lock.
type Gate struct {
	listener net.Listener
	engine   string        // the engine's address
	grace    time.Duration // stopGrace, but in tests
	writes   sync.Mutex
	wrote    func(Write) // called with writes held

	mu      sync.Mutex
	closed  bool
	tunnels map[*tunnel]struct{}
	running sync.WaitGroup
}

// tunnel is one client's way to the engine.
type tunnel struct {
	client, engine net.Conn
	requests       *bufio.Reader
	replies        *bufio.Reader
}

// Write is what the gate knows of a command that may have written. What could not be read is empty.
type Write struct{ Command, Database, Collection string }

// Open listens on addr and passes what comes there on to engine; both are host and port. Behind each write, and before the next one
// and the client's reply, it calls wrote.
func Open(addr, engine string, wrote func(Write)) (*Gate, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	g := &Gate{listener: listener, engine: engine, grace: stopGrace, wrote: wrote, tunnels: make(map[*tunnel]struct{})}
	g.running.Go(g.accept)
	return g, nil
}

// Addr is where clients connect.
func (g *Gate) Addr() string { return g.listener.Addr().String() }

func (g *Gate) accept() {
	for {
		client, err := g.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors, or a client that was gone at once
			time.Sleep(10 * time.Millisecond)
			continue
		}
		g.running.Go(func() { g.serve(client) })
	}
}

// serve carries one client's requests, one after the other, until either side is gone.
func (g *Gate) serve(client net.Conn) {
	defer client.Close()
	engine, err := net.Dial("tcp", g.engine)
	if err != nil {
		return
	}
	defer engine.Close()
	t := &tunnel{client: client, engine: engine, requests: bufio.NewReader(client), replies: bufio.NewReader(engine)}
	if !g.enter(t) {
		return
	}
	defer g.leave(t)
	for {
		if err := g.pass(t); err != nil {
			return
		}
	}
}

// pass carries one request to the engine and its reply back.
func (g *Gate) pass(t *tunnel) error {
	request, err := readMessage(t.requests)
	if err != nil {
		return err
	}
	request, answered := request.asSingle()
	reply, err := g.exchange(t, request)
	if err != nil || !answered {
		return err
	}
	_, err = t.client.Write(reply)
	return err
}

// exchange gives the engine one request and takes its one reply; alone, unless the request only reads.
func (g *Gate) exchange(t *tunnel, request message) (message, error) {
	reads := request.onlyReads()
	if !reads {
		g.writes.Lock()
		defer g.writes.Unlock()
	}
	if _, err := t.engine.Write(request); err != nil {
		return nil, fmt.Errorf("passing a request: %w", err)
	}
	reply, err := readMessage(t.replies)
	if err != nil {
		return nil, fmt.Errorf("taking a reply: %w", err)
	}
	if reply.flags()&flagMoreToCome != 0 {
		return nil, errors.New("the engine streams replies that were not allowed")
	}
	if !reads {
		g.wrote(request.write())
	}
	return reply, nil
}

func (g *Gate) enter(t *tunnel) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.tunnels[t] = struct{}{}
	}
	return !g.closed
}

func (g *Gate) leave(t *tunnel) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.tunnels, t)
}

// Close takes no more connections and requests, lets replies that are due go out, and returns when all connections are gone.
func (g *Gate) Close() {
	_ = g.listener.Close()
	g.endAll(func(t *tunnel) { _ = t.client.SetReadDeadline(time.Unix(1, 0)) })
	impatience := time.AfterFunc(g.grace, func() {
		g.endAll(func(t *tunnel) { _ = errors.Join(t.client.Close(), t.engine.Close()) })
	})
	defer impatience.Stop()
	g.running.Wait()
}

func (g *Gate) endAll(end func(*tunnel)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for t := range g.tunnels {
		end(t)
	}
}
