package socketgateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/opstest"
)

// faultLimit bounds every wait of the fault tests. It is far above what any of them takes.
const faultLimit = 90 * time.Second

// child is a gateway in a process of its own.
type child struct {
	url, ops string
	command  *exec.Cmd
	ended    chan struct{}
}

// startChild runs a gateway in a process of this test's own binary, and returns when it serves.
func (w *world) startChild(change ...func(*childBounds)) *child {
	w.t.Helper()
	bounds := defaultBounds()
	for _, f := range change {
		f(&bounds)
	}
	encoded, err := json.Marshal(bounds)
	w.must(err)
	keys := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(w.keys.JWKS()) }))
	w.t.Cleanup(keys.Close)
	addr, ops := nettest.Addr(w.t), nettest.Addr(w.t)
	c := &child{url: "http://" + addr, ops: "http://" + ops, command: exec.Command(os.Args[0]), ended: make(chan struct{})}
	c.command.Env = append(os.Environ(), runAsGateway+"=1", "HTTP_ADDR="+addr, "OPS_ADDR="+ops,
		"NATS_URL="+w.natsURL, "REDIS_URL="+w.redisURL, "JWKS_URL="+keys.URL, "DRAIN_TIMEOUT=500ms",
		boundsVariable+"="+string(encoded))
	if os.Getenv("PARLEY_TEST_LOG") != "" {
		c.command.Stdout, c.command.Stderr = os.Stderr, os.Stderr
	}
	if err := c.command.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = c.command.Wait(); close(c.ended) }()
	w.t.Cleanup(c.kill)
	opstest.AwaitUp(w.t, c.ops)
	return c
}

func (c *child) signal(s syscall.Signal) { _ = c.command.Process.Signal(s) }

func (c *child) kill() {
	_ = c.command.Process.Kill()
	<-c.ended
}

func (c *child) terminate() {
	c.signal(syscall.SIGTERM)
	<-c.ended
}

// tcpProxy forwards TCP to several gateways: each connection goes to the next one that answers. It can be cut.
type tcpProxy struct {
	t        *testing.T
	listener net.Listener
	url      string
	serving  sync.WaitGroup

	mu       sync.Mutex
	backends []string
	next     int
	shut     bool
	conns    map[net.Conn]struct{}
}

func newProxy(t *testing.T) *tcpProxy {
	t.Helper()
	d := &tcpProxy{t: t, listener: nettest.Listen(t), conns: make(map[net.Conn]struct{})}
	d.url = "http://" + d.addr()
	d.serving.Go(d.accept)
	t.Cleanup(func() {
		d.listener.Close()
		d.cut()
		d.serving.Wait()
	})
	return d
}

func (d *tcpProxy) addr() string { return d.listener.Addr().String() }

func (d *tcpProxy) open(url string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.backends = append(d.backends, strings.TrimPrefix(url, "http://"))
}

// close sends nobody there any more; who is there stays.
func (d *tcpProxy) close(url string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.backends = slices.DeleteFunc(d.backends, func(b string) bool { return b == strings.TrimPrefix(url, "http://") })
}

// shake breaks all connections.
func (d *tcpProxy) shake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		c.Close()
	}
}

// cut breaks all connections and lets none through until repair.
func (d *tcpProxy) cut() {
	d.mu.Lock()
	d.shut = true
	d.mu.Unlock()
	d.shake()
}

func (d *tcpProxy) repair() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = false
}

func (d *tcpProxy) accept() {
	for {
		c, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.serving.Go(func() { d.serve(c) })
	}
}

func (d *tcpProxy) serve(c net.Conn) {
	defer c.Close()
	to := d.dial()
	if to == nil {
		return
	}
	defer to.Close()
	if !d.note(c, to) {
		return
	}
	defer d.forget(c, to)
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { _, _ = io.Copy(to, c); to.Close(); c.Close() })
	_, _ = io.Copy(c, to)
	c.Close()
	to.Close()
}

func (d *tcpProxy) dial() net.Conn {
	d.mu.Lock()
	backends, shut := slices.Clone(d.backends), d.shut
	d.next++
	first := d.next
	d.mu.Unlock()
	for i := range backends {
		if shut {
			break
		}
		to, err := net.DialTimeout("tcp", backends[(first+i)%len(backends)], time.Second)
		if err == nil {
			return to
		}
	}
	return nil
}

func (d *tcpProxy) note(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range conns {
		d.conns[c] = struct{}{}
	}
	return !d.shut
}

func (d *tcpProxy) forget(conns ...net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range conns {
		delete(d.conns, c)
	}
}

// clients is a number of visitors with an official client each, and someone who writes to them without end.
type clients struct {
	t        *testing.T
	w        *world
	visitors []visitor
	events   chan clientsEvent
	stop     context.CancelFunc
	sending  sync.WaitGroup
	sent     []atomic.Int64

	got                         [][]int
	connects, recovered, missed int
	gone                        int
	refusals                    []string
}

type clientsEvent struct {
	Client    int    `json:"client"`
	Event     string `json:"event"`
	N         int    `json:"n"`
	Recovered bool   `json:"recovered"`
	Message   string `json:"message"`
	Active    bool   `json:"active"`
}

// newClients returns when all are connected.
func newClients(t *testing.T, w *world, url, transports string, size int) *clients {
	t.Helper()
	c := &clients{t: t, w: w, events: make(chan clientsEvent, 1<<16), sent: make([]atomic.Int64, size), got: make([][]int, size), stop: func() {}}
	tokens := make([]string, size)
	for i := range size {
		c.visitors = append(c.visitors, w.visitor())
		tokens[i] = c.visitors[i].token
	}
	encoded, _ := json.Marshal(tokens)
	startNode(t, c.events, "visitors.mjs", "GATEWAY_URL="+url, "TOKENS="+string(encoded), "TRANSPORTS="+transports)
	t.Cleanup(func() {
		c.stop()
		c.sending.Wait()
	})
	c.until("all are connected", func() bool { return c.connects == size })
	return c
}

// publish writes to everybody in turn until finish, a few hundred replies a second. What could not be
// published is tried again: its id makes it one event.
func (c *clients) publish() {
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.sending.Go(func() {
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			c.send(i % len(c.visitors))
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
}

func (c *clients) send(i int) {
	v := c.visitors[i]
	e := event.Reply{CompanyID: "company", AppID: v.appID, ChatUserID: v.chatUserID, ChatID: v.chatID, Message: chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now().UTC().Truncate(time.Millisecond), Type: chat.Text,
		Data: fmt.Appendf(nil, `{"text":"x","n":%d}`, c.sent[i].Load()), NameOfSender: "Nora", IsFromSupport: true,
	}}
	for deadline := time.Now().Add(faultLimit); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := c.w.bus.Publish(ctx, event.Derived(), e)
		cancel()
		if err == nil {
			c.sent[i].Add(1)
			return
		}
		if time.Now().After(deadline) {
			c.t.Errorf("publishing: %v", err)
			return
		}
		time.Sleep(20 * time.Millisecond) // NATS is stopped
	}
}

// until takes what happens until done, and fails the test when that does not come.
func (c *clients) until(what string, done func() bool) {
	c.t.Helper()
	deadline := time.NewTimer(faultLimit)
	defer deadline.Stop()
	for !done() {
		select {
		case e := <-c.events:
			c.take(e)
		case <-deadline.C:
			c.t.Fatalf("timeout: %s: %s, refusals %v", what, c.tally(), c.refusals)
		}
	}
}

func (c *clients) take(e clientsEvent) {
	switch e.Event {
	case "message":
		c.got[e.Client] = append(c.got[e.Client], e.N)
	case "connect":
		c.connects++
		if e.Recovered {
			c.recovered++
		} else if c.connects > len(c.visitors) {
			c.missed++
		}
	case "disconnect":
		c.gone++
	case "connect_error":
		if !e.Active { // if active, the client retries by itself
			c.refusals = append(c.refusals, e.Message)
		}
	}
}

// awaitEach returns when everybody has got so many more.
func (c *clients) awaitEach(n int) {
	c.t.Helper()
	before := make([]int, len(c.got))
	for i := range c.got {
		before[i] = len(c.got[i])
	}
	c.until(fmt.Sprintf("each has got %d more", n), func() bool {
		for i := range c.got {
			if len(c.got[i]) < before[i]+n {
				return false
			}
		}
		return true
	})
}

func (c *clients) awaitRecovered(n int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d have come back", n), func() bool { return c.recovered+c.missed >= n })
}

func (c *clients) awaitGone() {
	c.t.Helper()
	c.until("all are gone", func() bool { return c.gone >= len(c.visitors) })
}

func (c *clients) awaitSent(n int) {
	for total := 0; total < n; time.Sleep(5 * time.Millisecond) { // polling: the publisher does not notify
		total = 0
		for i := range c.sent {
			total += int(c.sent[i].Load())
		}
	}
}

// finish stops the publisher, waits until everybody has got the last reply, and counts.
func (c *clients) finish() {
	c.t.Helper()
	c.stop()
	c.sending.Wait()
	for i := range c.visitors { // after any duplicates
		c.send(i)
	}
	c.until("everybody has got the last reply", func() bool {
		for i := range c.got {
			if n := len(c.got[i]); n == 0 || c.got[i][n-1] != int(c.sent[i].Load())-1 {
				return false
			}
		}
		return true
	})
	result := c.tally()
	c.t.Log(result)
	if result.lost != 0 || result.doubled != 0 || result.disordered != 0 || len(c.refusals) > 0 {
		c.t.Errorf("got %s and refusals %v, want nothing lost, doubled or out of order, and nobody refused", result, c.refusals)
	}
}

type tally struct {
	sent, received, lost, doubled, disordered, connects, recovered, missed int
}

func (t tally) String() string {
	return fmt.Sprintf("sent %d, received %d, lost %d, doubled %d, out of order %d; %d connections, %d recovered, %d not",
		t.sent, t.received, t.lost, t.doubled, t.disordered, t.connects, t.recovered, t.missed)
}

func (c *clients) tally() tally {
	t := tally{connects: c.connects, recovered: c.recovered, missed: c.missed}
	for i, got := range c.got {
		sent := int(c.sent[i].Load())
		t.sent += sent
		t.received += len(got)
		seen := make(map[int]bool)
		for k, n := range got {
			if seen[n] {
				t.doubled++
			}
			seen[n] = true
			if k > 0 && n < got[k-1] {
				t.disordered++
			}
		}
		for n := range sent {
			if !seen[n] {
				t.lost++
			}
		}
	}
	return t
}
