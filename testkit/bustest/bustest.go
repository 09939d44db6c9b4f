// Package bustest provides an in-process NATS server for tests, connected buses, and collectors of messages.
package bustest

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/testkit/timetest"
)

// limit is the timeout of every wait in this package, far above the usual duration.
const limit = 15 * time.Second

// LeftByNATS returns options that make a leak check ignore goroutines leaked by a NATS server that was
// stopped while it created a stream: those of the stream's store and of the clock shared by all stores.
func LeftByNATS() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
	}
}

// Start starts a NATS server with Parley's streams, which stops when the test ends.
func Start(t testing.TB) *embedded.NATS {
	t.Helper()
	n := StartBare(t)
	DeclareSmall(t, n.URL())
	return n
}

// StartSized is [Start] with custom sizes.
func StartSized(t testing.TB, settings bus.StreamSettings) *embedded.NATS {
	t.Helper()
	n := StartBare(t)
	Declare(t, n.URL(), settings)
	return n
}

// StartBare starts a NATS server with JetStream and no streams, which stops when the test ends.
func StartBare(t testing.TB) *embedded.NATS {
	t.Helper()
	n, err := embedded.StartNATS(embedded.NATSConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("starting NATS: %v", err)
	}
	t.Cleanup(n.Stop)
	return n
}

// Open returns a connected bus whose streams exist. It is closed when the test ends.
func Open(t testing.TB, url string) *bus.Bus {
	t.Helper()
	return OpenConfig(t, bus.Config{URL: url})
}

// OpenConfig is [Open] with a custom configuration. Name and Logger have defaults.
func OpenConfig(t testing.TB, cfg bus.Config) *bus.Bus {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "test"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	b, err := bus.Open(cfg)
	if err != nil {
		t.Fatalf("opening the bus: %v", err)
	}
	t.Cleanup(b.Close)
	AwaitReady(t, b)
	return b
}

// AwaitReady waits until b is ready.
func AwaitReady(t testing.TB, b *bus.Bus) {
	t.Helper()
	timetest.Until(t, "the bus is ready", func() bool { return b.Ready(t.Context()) == nil })
}

// Collector collects the messages of a plain NATS subscription.
type Collector struct {
	t        testing.TB
	messages chan *nats.Msg
}

// Collect subscribes to filter with a separate client until the test ends.
func Collect(t testing.TB, url, filter string) *Collector {
	t.Helper()
	return collect(t, url, filter, func(*nats.Msg) bool { return true })
}

// groupOf reports whether a durable consumer belongs to a group: it has the group's name, or the name of one
// of its partitions.
func groupOf(name, group string) bool {
	partition, ok := strings.CutPrefix(name, group+"-")
	_, err := strconv.Atoi(partition)
	return group == "*" || name == group || ok && err == nil
}

// DeleteGroup deletes all durable consumers of a group from the server.
func DeleteGroup(t testing.TB, b *bus.Bus, stream, group string) {
	t.Helper()
	s, err := b.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	list := s.ConsumerNames(t.Context())
	for name := range list.Name() {
		if groupOf(name, group) {
			names = append(names, name)
		}
	}
	if err := list.Err(); err != nil || len(names) == 0 {
		t.Fatalf("consumers of %s: got %v and %v, want some", group, names, err)
	}
	for _, name := range names {
		if err := s.DeleteConsumer(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// CollectEnds collects the final acknowledgements of a consumer (+ACK and +TERM), without progress acknowledgements.
func CollectEnds(t testing.TB, url, stream, durable string) *Collector {
	t.Helper()
	return collect(t, url, "$JS.ACK."+stream+".*.>", func(m *nats.Msg) bool {
		name := strings.Split(m.Subject, ".")[3]
		return groupOf(name, durable) && (string(m.Data) == "+ACK" || string(m.Data) == "+TERM")
	})
}

// CollectProgress collects the progress acknowledgements of a consumer, which it sends three times in each AckWait for
// every delivery that it holds.
func CollectProgress(t testing.TB, url, stream, durable string) *Collector {
	t.Helper()
	return collect(t, url, "$JS.ACK."+stream+".*.>", func(m *nats.Msg) bool {
		name := strings.Split(m.Subject, ".")[3]
		return groupOf(name, durable) && string(m.Data) == "+WPI"
	})
}

// AwaitRepeated returns when n messages of one subject have arrived.
func (c *Collector) AwaitRepeated(n int) {
	c.t.Helper()
	counts := make(map[string]int)
	for {
		subj := c.Next().Subject
		if counts[subj]++; counts[subj] == n {
			return
		}
	}
}

func collect(t testing.TB, url, filter string, want func(*nats.Msg) bool) *Collector {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatalf("connecting the collector: %v", err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		close(ended)
		nc.Close()
	})
	c := &Collector{t: t, messages: make(chan *nats.Msg, 64*1024)}
	_, err = nc.Subscribe(filter, func(m *nats.Msg) {
		if !want(m) {
			return
		}
		select {
		case c.messages <- m:
		case <-ended:
		}
	})
	if err != nil {
		t.Fatalf("subscribing to %s: %v", filter, err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatalf("subscribing to %s: %v", filter, err)
	}
	return c
}

// Next returns the next message. It fails the test after a timeout.
func (c *Collector) Next() *nats.Msg {
	c.t.Helper()
	select {
	case m := <-c.messages:
		return m
	case <-time.After(limit):
		c.t.Fatal("got no message, want one")
		return nil
	}
}

// Await returns the next n messages.
func (c *Collector) Await(n int) []*nats.Msg {
	c.t.Helper()
	got := make([]*nats.Msg, 0, n)
	for range n {
		got = append(got, c.Next())
	}
	return got
}

// Pending returns the number of messages not returned by Next yet.
func (c *Collector) Pending() int { return len(c.messages) }
