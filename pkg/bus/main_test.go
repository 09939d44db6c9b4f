package bus_test

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
)

// patience is the timeout of every wait in these tests, far above the usual duration.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if server := os.Getenv(serverEnv); server != "" {
		serve(server)
		return
	}
	goleak.VerifyTestMain(m, bustest.LeftByNATS()...)
}

// reply returns an event with the visitor in its subject and n as its text.
func reply(visitor string, n int) event.Reply {
	return event.Reply{
		CompanyID: "company", AppID: "app", ChatUserID: visitor, ChatID: "chat",
		Message: chat.Message{
			ID: uuid.NewString(), CreatedAt: time.Date(2026, 5, 4, 3, 2, 1, 987_654_321, time.UTC), Type: chat.Text,
			Data: []byte(`{"n":` + strconv.Itoa(n) + `}`), NameOfSender: "Bot", IsFromSupport: true,
		},
	}
}

func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("timeout waiting for %s", what)
		panic("unreachable")
	}
}

// beyondAckWait is the number of progress acknowledgements of one delivery after which its AckWait has passed: one
// comes in each third of it.
const beyondAckWait = 5

// engine is a NATS server that can be stopped and restarted with the same address and directory.
type engine struct {
	t    testing.TB
	dir  string
	addr string
	nats *embedded.NATS
}

func startEngine(t testing.TB) *engine {
	t.Helper()
	e := &engine{t: t, dir: t.TempDir(), addr: nettest.Addr(t)}
	e.start()
	t.Cleanup(func() { e.nats.Stop() })
	bustest.DeclareSmall(t, e.nats.URL())
	return e
}

func (e *engine) start() {
	e.t.Helper()
	n, err := embedded.StartNATS(embedded.NATSConfig{Addr: e.addr, Dir: e.dir})
	if err != nil {
		e.t.Fatalf("starting NATS: %v", err)
	}
	e.nats = n
}

func (e *engine) stop() { e.nats.Stop() }

// logbook collects the output of a slog handler.
type logbook struct {
	mu    sync.Mutex
	lines []byte
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, p...)
	return len(p), nil
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.lines)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// sequences records the numbers of each key in order of arrival.
type sequences struct {
	mu    sync.Mutex
	byKey map[string][]int
	total atomic.Int64
}

func newSequences() *sequences { return &sequences{byKey: make(map[string][]int)} }

func (s *sequences) record(d bus.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byKey[d.Subject] = append(s.byKey[d.Subject], number(d))
	s.total.Add(1)
}

func (s *sequences) len() int { return int(s.total.Load()) }

// check fails the test unless each key got 0, 1, 2, ..., each-1 in order.
func (s *sequences) check(t *testing.T, keys, each int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byKey) != keys {
		t.Errorf("got deliveries of %d keys, want %d", len(s.byKey), keys)
	}
	for key, got := range s.byKey {
		if err := ascending(got, each); err != nil {
			t.Errorf("key %s: %v", key, err)
		}
	}
}

// checkOrder fails the test unless each key got its numbers in order, none twice.
func (s *sequences) checkOrder(t *testing.T, keys int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byKey) != keys {
		t.Errorf("got deliveries of %d keys, want %d", len(s.byKey), keys)
	}
	for key, got := range s.byKey {
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) < len(got) {
			t.Errorf("key %s: got %v, want ascending numbers", key, got)
		}
	}
}

func ascending(got []int, each int) error {
	if len(got) != each {
		return fmt.Errorf("got %d deliveries, want %d: %v", len(got), each, got)
	}
	for i, n := range got {
		if n != i {
			return fmt.Errorf("got number %d at index %d: %v", n, i, got)
		}
	}
	return nil
}

// number returns the n of a reply.
func number(d bus.Delivery) int {
	_, rest, _ := strings.Cut(string(d.Data), `{"n":`)
	digits, _, _ := strings.Cut(rest, "}")
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(fmt.Sprintf("no number in %s", d.Data))
	}
	return n
}
