package writegate

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// startEngine answers every request with what answer makes of it; a nil answer ends the connection.
func startEngine(t *testing.T, answer func(request message) message) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { converse(c, answer) })
		}
	})
	t.Cleanup(func() { listener.Close(); all.Wait() })
	return listener.Addr().String()
}

func converse(c net.Conn, answer func(message) message) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		request, err := readMessage(in)
		if err != nil {
			return
		}
		reply := answer(request)
		if reply == nil {
			return
		}
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

// echo answers with the request's id and command.
func echo(m message) message {
	return wireMessage(requestID(m), opMsg, []byte("\x00\x00\x00\x00"+m.command()))
}

func requestID(m message) uint32 { return binary.LittleEndian.Uint32(m[4:]) }

// startGate opens a gate that the test's end closes; before the engine, so that its connections are gone.
func startGate(t *testing.T, engine string) *Gate {
	t.Helper()
	return startListeningGate(t, engine, func(Write) {})
}

func startListeningGate(t *testing.T, engine string, wrote func(Write)) *Gate {
	t.Helper()
	g, err := Open("127.0.0.1:0", engine, wrote)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// client speaks to the gate.
type client struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func connect(t *testing.T, g *Gate) *client {
	t.Helper()
	c, err := net.Dial("tcp", g.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{Conn: c, t: t, in: bufio.NewReader(c)}
}

func (c *client) send(m []byte) {
	c.t.Helper()
	if _, err := c.Write(m); err != nil {
		c.t.Fatalf("sending: %v", err)
	}
}

func (c *client) wantReply(id uint32, command string) {
	c.t.Helper()
	m, err := readMessage(c.in)
	if err != nil {
		c.t.Fatalf("reading a reply: %v", err)
	}
	if want := echo(numbered(c.t, id, command)); !bytes.Equal(m, want) {
		c.t.Fatalf("got the reply %x, want %x", m, want)
	}
}

func (c *client) wantEnd() {
	c.t.Helper()
	if b, err := c.in.ReadByte(); err == nil || isTimeout(err) {
		c.t.Fatalf("got %x, %v, want the connection ended", b, err)
	}
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// numbered is a command with a request id.
func numbered(t testing.TB, id uint32, command string) message {
	m := commandMessage(t, 0, false, bson.D{{Key: command, Value: "c"}})
	binary.LittleEndian.PutUint32(m[4:], id)
	return m
}

// heldEngine holds each write until the test lets it go on, and says when one has come.
type heldEngine struct {
	came    chan uint32
	release chan struct{}
	inside  atomic.Int32
	most    atomic.Int32
}

func newHeldEngine() *heldEngine {
	return &heldEngine{came: make(chan uint32, 100), release: make(chan struct{})}
}

func (h *heldEngine) answer(m message) message {
	if m.onlyReads() {
		return echo(m)
	}
	h.most.Store(max(h.most.Load(), h.inside.Add(1)))
	h.came <- requestID(m)
	<-h.release
	h.inside.Add(-1)
	return echo(m)
}

func (h *heldEngine) wantCame(t *testing.T) uint32 {
	t.Helper()
	select {
	case id := <-h.came:
		return id
	case <-time.After(patience):
		t.Fatal("no write came to the engine")
		return 0
	}
}

func TestWritesPassOneByOneAndReadsFreely(t *testing.T) {
	t.Parallel()
	h := newHeldEngine()
	g := startGate(t, startEngine(t, h.answer))
	const writers, each = 8, 5
	var all sync.WaitGroup
	for n := range writers {
		c := connect(t, g)
		all.Go(func() {
			for i := range each {
				id := uint32(100*n + i)
				if _, err := c.Write(numbered(t, id, "update")); err != nil {
					t.Errorf("sending: %v", err)
				}
				if m, err := readMessage(c.in); err != nil || requestID(m) != id {
					t.Errorf("got %x, %v, want a reply to %d", m, err, id)
				}
			}
		})
	}
	reader := connect(t, g)
	for n := range uint32(writers * each) {
		h.wantCame(t) // a write is inside
		reader.send(numbered(t, n, "find"))
		reader.wantReply(n, "find")
		h.release <- struct{}{}
	}
	all.Wait()
	if most := h.most.Load(); most != 1 {
		t.Errorf("got %d writes in the engine at once, want 1", most)
	}
}

// TestWritesAreToldOf holds the telling of a write: until it is over, no other write comes to the engine.
func TestWritesAreToldOf(t *testing.T) {
	t.Parallel()
	told := make(chan Write)
	var inEngine atomic.Int32
	g := startListeningGate(t, startEngine(t, func(m message) message {
		if !m.onlyReads() {
			inEngine.Add(1)
		}
		return echo(m)
	}), func(w Write) { told <- w })
	first, second, reader := connect(t, g), connect(t, g), connect(t, g)
	first.send(numbered(t, 1, "insert"))
	second.send(numbered(t, 2, "insert"))
	for n := range int32(2) {
		reader.send(numbered(t, 3, "find"))
		reader.wantReply(3, "find")
		if w, want := <-told, (Write{Command: "insert", Collection: "c"}); w != want {
			t.Errorf("got %+v, want %+v", w, want)
		}
		if n == 0 && inEngine.Load() == 0 {
			t.Error("a write was told of before the engine had it")
		}
	}
	first.wantReply(1, "insert")
	second.wantReply(2, "insert")
}

// TestDyingClientsGiveTheLockBack kills clients in the middle of a request, while the engine works on it, and before the reply.
func TestDyingClientsGiveTheLockBack(t *testing.T) {
	t.Parallel()
	h := newHeldEngine()
	g := startGate(t, startEngine(t, h.answer))

	half := connect(t, g)
	write := numbered(t, 1, "insert")
	half.send(write[:len(write)/2])
	half.Close()

	working := connect(t, g)
	working.send(numbered(t, 2, "insert"))
	if id := h.wantCame(t); id != 2 {
		t.Fatalf("got write %d in the engine, want 2", id)
	}
	working.Close()

	alive := connect(t, g)
	alive.send(numbered(t, 3, "insert"))
	h.release <- struct{}{} // the dead client's write is over only now
	if id := h.wantCame(t); id != 3 {
		t.Fatalf("got write %d in the engine, want 3", id)
	}
	h.release <- struct{}{}
	alive.wantReply(3, "insert")
	if most := h.most.Load(); most != 1 {
		t.Errorf("got %d writes in the engine at once, want 1", most)
	}
}

// TestDyingEngineGivesTheLockBack ends the engine's connection in the middle of a write.
func TestDyingEngineGivesTheLockBack(t *testing.T) {
	t.Parallel()
	g := startGate(t, startEngine(t, func(m message) message {
		if m.command() == "drop" {
			return nil
		}
		return echo(m)
	}))
	unlucky, other := connect(t, g), connect(t, g)
	unlucky.send(numbered(t, 1, "drop"))
	unlucky.wantEnd()
	other.send(numbered(t, 2, "insert"))
	other.wantReply(2, "insert")
}

// TestSlowClientsHoldNobodyUp leaves a large reply to a write unread.
func TestSlowClientsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	large := wireMessage(1, opMsg, make([]byte, 40_000_000))
	g := startGate(t, startEngine(t, func(m message) message {
		if m.command() == "findAndModify" {
			return large
		}
		return echo(m)
	}))
	slow, other := connect(t, g), connect(t, g)
	slow.send(numbered(t, 1, "findAndModify"))
	if _, err := slow.in.Peek(1); err != nil { // its reply has begun to come, and stays in the buffers on the way
		t.Fatal(err)
	}
	other.send(numbered(t, 2, "insert"))
	other.wantReply(2, "insert")
	if m, err := readMessage(slow.in); err != nil || !bytes.Equal(m, large) {
		t.Errorf("got %d bytes, %v, want %d", len(m), err, len(large))
	}
}

func TestPipelinedRequests(t *testing.T) {
	t.Parallel()
	c := connect(t, startGate(t, startEngine(t, echo)))
	var burst []byte
	command := func(n uint32) string { return []string{"find", "insert", "ping"}[n%3] }
	for n := range uint32(50) {
		burst = append(burst, numbered(t, n, command(n))...)
	}
	c.send(burst)
	for n := range uint32(50) {
		c.wantReply(n, command(n))
	}
}

// TestUnansweredRequests sends writes that want no reply: the engine carries each out, alone, and the client hears nothing.
func TestUnansweredRequests(t *testing.T) {
	t.Parallel()
	got := make(chan uint32, 10)
	c := connect(t, startGate(t, startEngine(t, func(m message) message {
		got <- m.flags()
		return echo(m)
	})))
	c.send(commandMessage(t, flagMoreToCome, false, bson.D{{Key: "insert", Value: "c"}}))
	c.send(commandMessage(t, flagMoreToCome|flagExhaustAllowed|flagChecksumPresent, false, bson.D{{Key: "insert", Value: "c"}}))
	c.send(numbered(t, 9, "find"))
	c.wantReply(9, "find")
	for n := range 3 {
		if flags := <-got; flags != 0 {
			t.Errorf("request %d: got flags %b in the engine, want none", n, flags)
		}
	}
}

// TestStreamingEngineIsEnded has an engine stream replies although the gate takes that leave from every request.
func TestStreamingEngineIsEnded(t *testing.T) {
	t.Parallel()
	c := connect(t, startGate(t, startEngine(t, func(m message) message {
		return commandMessage(t, flagMoreToCome, false, bson.D{{Key: "ok", Value: 1}})
	})))
	c.send(commandMessage(t, flagExhaustAllowed, false, bson.D{{Key: "hello", Value: 1}}))
	c.wantEnd()
}

func TestMessagesOfImpossibleLengthEndTheConnection(t *testing.T) {
	t.Parallel()
	g := startGate(t, startEngine(t, echo))
	for _, length := range []uint32{0, headerLength - 1, maxMessageLength + 1, 1 << 31} {
		c := connect(t, g)
		m := numbered(t, 1, "find")
		binary.LittleEndian.PutUint32(m, length)
		c.send(m[:headerLength])
		c.wantEnd()
	}
}

func TestEngineAway(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	listener.Close()
	connect(t, startGate(t, nobody)).wantEnd()
}

func TestCloseLetsRepliesOut(t *testing.T) {
	t.Parallel()
	h := newHeldEngine()
	g := startGate(t, startEngine(t, h.answer))
	idle, busy := connect(t, g), connect(t, g)
	idle.send(numbered(t, 1, "ping"))
	idle.wantReply(1, "ping")
	busy.send(numbered(t, 2, "insert"))
	h.wantCame(t)
	closed := make(chan struct{})
	go func() { defer close(closed); g.Close() }()
	idle.wantEnd()
	h.release <- struct{}{}
	busy.wantReply(2, "insert")
	busy.wantEnd()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("the gate did not close")
	}
	if c, err := net.Dial("tcp", g.Addr()); err == nil {
		c.Close()
		t.Error("a closed gate takes connections")
	}
}

func TestCloseDoesNotWaitForASilentEngine(t *testing.T) {
	t.Parallel()
	h := newHeldEngine()
	defer close(h.release)
	g := startGate(t, startEngine(t, h.answer))
	g.grace = 50 * time.Millisecond
	c := connect(t, g)
	c.send(numbered(t, 1, "insert"))
	h.wantCame(t)
	g.Close()
	c.wantEnd()
}

func TestOpenTellsOfATakenAddress(t *testing.T) {
	t.Parallel()
	first := startGate(t, "127.0.0.1:1")
	if second, err := Open(first.Addr(), "127.0.0.1:1", func(Write) {}); err == nil {
		second.Close()
		t.Fatal("got no error for an address that is taken")
	}
}

// TestCloseWhileClientsCome closes under a crowd: nothing is left behind (see TestMain), and nobody panics.
func TestCloseWhileClientsCome(t *testing.T) {
	t.Parallel()
	g := startGate(t, startEngine(t, echo))
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			for {
				c, err := net.Dial("tcp", g.Addr())
				if err != nil {
					return
				}
				_ = c.SetDeadline(time.Now().Add(patience))
				_, _ = fmt.Fprintf(c, "%s", numbered(t, uint32(n), "insert"))
				_, _ = io.Copy(io.Discard, io.LimitReader(c, headerLength))
				c.Close()
			}
		})
	}
	g.Close()
	all.Wait()
}
