package bus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// serverEnv makes this test binary run a NATS server that can be killed; its value is the address and the directory.
const serverEnv = "PARLEY_TEST_NATS"

// serve runs the server until it is killed. It prints the URL when the server is ready.
func serve(addrAndDir string) {
	addr, dir, _ := strings.Cut(addrAndDir, " ")
	n, err := embedded.StartNATS(embedded.NATSConfig{Addr: addr, Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(n.URL())
	_, _ = os.Stdin.Read(make([]byte, 1)) // returns when the test has ended
	n.Stop()
}

// process is a NATS server in a separate process.
type process struct {
	cmd *exec.Cmd
	url string
}

func startProcess(t *testing.T, addr, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"="+addr+" "+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "nats://") {
		t.Fatalf("starting the server: got %q, %v", line, err)
	}
	p.url = strings.TrimSpace(line)
	return p
}

// kill sends SIGKILL. It may be called more than once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// The server is killed repeatedly during publishes and handlers. All acknowledged events are in the stream,
// each once, and the consumer handles all of them; the first handling of each event is in stream order per
// key.
func TestKilledServerLosesNoAcknowledgedEvent(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	dir := t.TempDir()
	server := startProcess(t, nettest.Addr(t), dir)
	bustest.DeclareSmall(t, server.url)
	addr := strings.TrimPrefix(server.url, "nats://")
	b := bustest.Open(t, server.url)

	handled := newSequences()
	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error {
		handled.record(d)
		return nil
	}})
	const keys, kills = 16, 3
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var acknowledged atomic.Int64
	last := make([]int, keys) // last acknowledged number per key
	var callers sync.WaitGroup
	for k := range keys {
		callers.Go(func() {
			for ctx.Err() == nil {
				publishUntilAcknowledged(t, b, fmt.Sprintf("visitor%d", k), last[k])
				last[k]++
				acknowledged.Add(1)
			}
		})
	}
	for range kills {
		before := acknowledged.Load()
		timetest.Until(t, "traffic flows", func() bool { return acknowledged.Load() > before+1000 })
		server.kill()
		server = startProcess(t, addr, dir)
	}
	before := acknowledged.Load()
	timetest.Until(t, "traffic flows again", func() bool { return acknowledged.Load() > before+1000 })
	stop()
	callers.Wait()

	total := int(acknowledged.Load())
	if got := int(streamMessages(t, b, subject.Replies)); got != total {
		t.Errorf("got %d events in the stream, want the %d acknowledged ones, each once", got, total)
	}
	timetest.Until(t, "all are handled", func() bool { return handled.firsts() >= total })
	awaitEmpty(t, b, "tester")
	handled.checkFirsts(t, last)
}

// The server is killed, and then the process that reads crashes. The next process takes its pin at once.
func TestNextProcessTakesThePinOfADeadOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startProcess(t, nettest.Addr(t), dir)
	bustest.DeclareSmall(t, server.url)
	b := bustest.Open(t, server.url)
	first, err := bus.Open(bus.Config{URL: server.url, Name: "first", Logger: new(logbook).logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Close)
	bustest.AwaitReady(t, first)
	handled := make(chan int, 3)
	handle := func(_ context.Context, d bus.Delivery) error { handled <- number(d); return nil }
	doomed := consume(t, first, bus.Consumer{Handle: handle})
	write := func(n int) {
		t.Helper()
		publish(t, b, reply("visitor", n))
		if got := receive(t, fmt.Sprint("message ", n), handled); got != n {
			t.Errorf("got message %d, want %d", got, n)
		}
	}
	write(0)
	server.kill()
	startProcess(t, strings.TrimPrefix(server.url, "nats://"), dir)
	bustest.AwaitReady(t, b)
	bustest.AwaitReady(t, first)
	write(1)
	awaitEmpty(t, b, "tester")
	first.Crash()
	doomed.end()

	started := time.Now()
	consume(t, b, bus.Consumer{Handle: handle})
	write(2)
	if got := time.Since(started); got > bus.PinnedTTL/2 {
		t.Errorf("the message was handled after %v; the pin of the dead process lasts %v", got, bus.PinnedTTL)
	}
}

// publishUntilAcknowledged retries the publish of an event until it is acknowledged.
func publishUntilAcknowledged(t *testing.T, b *bus.Bus, visitor string, n int) {
	e := reply(visitor, n)
	for {
		err := b.Publish(context.Background(), event.Derived(), e)
		if err == nil {
			return
		}
		if _, coded := errors.AsType[*apperr.Error](err); !coded || !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("publishing: got %v, want nil or Unavailable", err)
			return
		}
	}
}

// firsts returns the number of distinct deliveries.
func (s *sequences) firsts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, got := range s.byKey {
		seen := make(map[int]bool)
		for _, x := range got {
			seen[x] = true
		}
		n += len(seen)
	}
	return n
}

// checkFirsts fails the test unless each key got 0 to last in order, ignoring duplicates.
func (s *sequences) checkFirsts(t *testing.T, last []int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, each := range last {
		seen := make(map[int]bool)
		var first []int
		for _, x := range s.byKey[fmt.Sprintf("chat.reply.app.visitor%d", k)] {
			if !seen[x] {
				seen[x] = true
				first = append(first, x)
			}
		}
		if err := ascending(first, each); err != nil {
			t.Errorf("visitor %d: %.300v", k, err)
		}
	}
}
