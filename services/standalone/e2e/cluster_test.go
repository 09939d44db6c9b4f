package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/servicetest"
)

// clusterRecovery bounds the time until a cluster of which all servers have started serves again: elections take 4 to 9
// seconds each on an idle machine.
const clusterRecovery = 2 * time.Minute

// outage is what happens to the servers of a cluster at once.
type outage struct {
	name   string
	killed int // servers that end by kill -9
	cut    int // of these, servers whose disk also loses what was not synced
	late   int // of these, servers that start when the others accept events again
}

var outages = []outage{
	{name: "two killed", killed: 2},
	{name: "all killed", killed: 3},
	{name: "all killed, one loses power", killed: 3, cut: 1},
	{name: "two lose power", killed: 2, cut: 2},
	{name: "all lose power at once", killed: 3, cut: 3},
	{name: "all lose power, one comes back late", killed: 3, cut: 3, late: 1},
}

// natsCluster is three NATS servers with sync_interval: always, each on a disk that forgets. With STREAM_SYNC=none they
// sync lazily: then the tests must fail.
type natsCluster struct {
	t       *testing.T // of the whole test
	servers []*natsServer
}

type natsServer struct {
	*child
	addr    string
	monitor string // address of its monitoring port
	config  string // its file
	disk    *cuttable
}

// newNATSCluster starts the servers.
func newNATSCluster(t *testing.T) *natsCluster {
	t.Helper()
	c := configureNATSCluster(t)
	for _, s := range c.servers {
		c.start(t, s)
	}
	return c
}

// configureNATSCluster mounts the disks and writes the configuration of the servers.
func configureNATSCluster(t *testing.T) *natsCluster {
	t.Helper()
	c := &natsCluster{t: t}
	var routes []string
	for range 3 {
		routes = append(routes, "nats://"+nettest.Addr(t))
	}
	sync := ", sync_interval: always"
	if os.Getenv("STREAM_SYNC") == "none" {
		sync = ""
	}
	dir := t.TempDir()
	for n, route := range routes {
		s := &natsServer{
			addr:    nettest.Addr(t),
			monitor: nettest.Addr(t),
			config:  filepath.Join(dir, fmt.Sprintf("nats-%d.conf", n)),
			disk:    newCuttable(t, t.TempDir()),
		}
		config := fmt.Sprintf(
			"server_name: nats-%d\nlisten: %q\nhttp: %q\nmax_payload: 2MB\n"+
				"jetstream: {store_dir: %q, max_file_store: %s%s}\n"+
				"cluster: {name: parley, listen: %q, routes: [%s], no_advertise: true}\n",
			n, s.addr, s.monitor,
			filepath.Join(s.disk.mount, "nats"), natsMaxFileStore, sync,
			strings.TrimPrefix(route, "nats://"), strings.Join(routes, ", "),
		)
		check(t, os.WriteFile(s.config, []byte(config), 0o600))
		c.servers = append(c.servers, s)
	}
	return c
}

func (c *natsCluster) start(t *testing.T, s *natsServer) {
	t.Helper()
	var err error
	s.child, err = s.spawn(t)
	check(t, err)
	s.stopAtEnd(c.t)
}

func (s *natsServer) spawn(t *testing.T) (*child, error) {
	t.Helper()
	return spawn("nats-server", nil, program(t, "nats-server"), "-c", s.config)
}

// url returns the URLs of all servers.
func (c *natsCluster) url() string {
	var urls []string
	for _, s := range c.servers {
		urls = append(urls, "nats://"+s.addr)
	}
	return strings.Join(urls, ",")
}

// suffer makes servers that chance selects suffer an outage, and starts them again in the order of chance. It returns
// when serves, which waits until the cluster serves again, has returned and all servers have started.
func (c *natsCluster) suffer(t *testing.T, chance *rand.Rand, o outage, serves func()) {
	t.Helper()
	order := chance.Perm(len(c.servers))[:o.killed]
	for _, n := range order {
		check(t, c.servers[n].kill())
	}
	for _, n := range order[:o.cut] {
		seed := ""
		if chance.IntN(2) == 0 {
			seed = fmt.Sprint(chance.Uint32())
		}
		c.servers[n].disk.cut(t, seed)
	}
	chance.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	early := len(order) - o.late
	for _, n := range order[:early] {
		c.start(t, c.servers[n])
	}
	began := time.Now()
	serves()
	t.Logf("the cluster serves again after %v", time.Since(began).Round(10*time.Millisecond))
	for _, n := range order[early:] {
		c.start(t, c.servers[n])
	}
}

// TestClusterOutages kills the servers of a cluster and cuts their power while publishers write and a group reads. What
// was acknowledged is in the stream once, in the order of its publisher, and the group gets it. SEED sets the moments.
func TestClusterOutages(t *testing.T) {
	needs.FUSE(t)
	seed := setting(t, "SEED", uint64(time.Now().UnixNano()))
	t.Logf("SEED=%d", seed)
	c := newNATSCluster(t)
	c.declare(t)
	c.checkDoctor(t)
	w := newClusterWriters(t, c)
	for round := range rounds() {
		for n, o := range outages {
			t.Run(fmt.Sprintf("%s %d", o.name, round), func(t *testing.T) {
				chance := rand.New(rand.NewPCG(seed, uint64(round*len(outages)+n)))
				w.awaitMore(t, 20+chance.IntN(400))
				c.suffer(t, chance, o, func() { w.awaitMore(t, 1) })
			})
		}
	}
	w.awaitMore(t, 100)
	w.stopWriting()
	t.Logf("%d events were acknowledged, %d attempts failed", w.acknowledged.Load(), w.failed.Load())
	w.checkStored(t)
	w.checkHandled(t)
}

// declare applies the streams with three replicas.
func (c *natsCluster) declare(t *testing.T) {
	t.Helper()
	b := bustest.OpenConfig(t, bus.Config{URL: c.url(), Observe: true})
	_, err := b.ApplyStreams(t.Context(), bus.StreamSettings{Replicas: 3, Partitions: 4, MaxBytes: 1 << 30})
	check(t, err)
}

// checkDoctor checks that parleyctl doctor names the promise, once it has asked all servers for their settings.
func (c *natsCluster) checkDoctor(t *testing.T) {
	t.Helper()
	for asked, want := range map[int]string{
		1: "if sync_interval is always on each server; 1 of 3 were checked",
		3: "ok accepted events are on 2 of 3 disks",
	} {
		args := []string{"doctor"}
		for _, s := range c.servers[:asked] {
			args = append(args, "--monitor", "http://"+s.monitor)
		}
		doctor := exec.CommandContext(t.Context(), program(t, "parleyctl"), args...)
		doctor.Env = []string{"NATS_URL=" + c.url()}
		out, _ := doctor.Output() // it fails: no service runs
		_, said, _ := strings.Cut(string(out), "\ndurability")
		said, _, _ = strings.Cut(said, "\n")
		if got := strings.Join(strings.Fields(said), " "); !strings.Contains(got, want) {
			t.Errorf("doctor asked %d servers and said %q of the durability, want %q", asked, got, want)
		}
	}
}

// clusterWriters publish replies to one visitor each, and repeat each until it is acknowledged. A group reads them.
type clusterWriters struct {
	cluster      *natsCluster
	bus          *bus.Bus // of the writers
	last         [8]int   // acknowledged events of each writer
	acknowledged atomic.Int64
	failed       atomic.Int64
	stopWriting  func()
	stopReading  func()

	mu       sync.Mutex       // guards the rest
	handled  map[string][]int // numbers by visitor, in the order of their first deliveries
	seen     map[string]bool  // by id
	repeated int              // deliveries of events that were handled before
}

func newClusterWriters(t *testing.T, c *natsCluster) *clusterWriters {
	t.Helper()
	w := &clusterWriters{
		cluster: c,
		bus:     bustest.Open(t, c.url()),
		handled: map[string][]int{},
		seen:    map[string]bool{},
	}
	group := bustest.Open(t, c.url())
	w.stopReading = servicetest.Run(t, func(ctx context.Context) error {
		return group.Consume(ctx, bus.Consumer{Stream: subject.Replies, Durable: "recorder", Handle: w.handle})
	})
	w.stopWriting = servicetest.Run(t, func(ctx context.Context) error {
		var writing sync.WaitGroup
		for n := range w.last {
			writing.Go(func() { w.write(ctx, n) })
		}
		writing.Wait()
		return nil
	})
	return w
}

func writerName(n int) string { return fmt.Sprint("visitor", n) }

// write publishes one event after the other until ctx ends, each until it is acknowledged.
func (w *clusterWriters) write(ctx context.Context, n int) {
	for ctx.Err() == nil {
		e := event.Reply{
			CompanyID: "company", AppID: "app", ChatUserID: writerName(n), ChatID: "chat",
			Message: chat.Message{
				ID: uuid.NewString(), CreatedAt: time.Now(), Type: chat.Text,
				Data: fmt.Appendf(nil, `{"n":%d}`, w.last[n]), NameOfSender: "Bot", IsFromSupport: true,
			},
		}
		for w.bus.Publish(context.Background(), event.Derived(), e) != nil {
			w.failed.Add(1)
			time.Sleep(10 * time.Millisecond) // as a caller with a pause between its attempts
		}
		w.last[n]++
		w.acknowledged.Add(1)
	}
}

// numbered is what the test reads of an event.
type numbered struct {
	ChatUserID string
	Message    struct {
		ID   string
		Data struct{ N int }
	}
}

func (w *clusterWriters) handle(_ context.Context, d bus.Delivery) error {
	var e numbered
	if err := json.Unmarshal(d.Data, &e); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[e.Message.ID] {
		w.repeated++
		return nil
	}
	w.seen[e.Message.ID] = true
	w.handled[e.ChatUserID] = append(w.handled[e.ChatUserID], e.Message.Data.N)
	return nil
}

// awaitMore waits until more events are acknowledged.
func (w *clusterWriters) awaitMore(t *testing.T, more int) {
	t.Helper()
	want := w.acknowledged.Load() + int64(more)
	for end := time.Now().Add(clusterRecovery); w.acknowledged.Load() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d events acknowledged in %v, want %d", w.acknowledged.Load(), clusterRecovery, want)
		}
	}
}

// checkStored checks that the stream has every acknowledged event once, in the order of its writer.
func (w *clusterWriters) checkStored(t *testing.T) {
	t.Helper()
	js := bustest.JetStream(t, w.cluster.url())
	var stream jetstream.Stream
	eventually(t, "the stream answers", func() (err error) { // the cluster may still elect leaders
		stream, err = js.Stream(t.Context(), subject.Replies)
		return err
	})
	stored := map[string][]int{}
	state := stream.CachedInfo().State
	for sequence := state.FirstSeq; sequence <= state.LastSeq; sequence++ {
		var m *jetstream.RawStreamMsg
		eventually(t, "a stored event", func() (err error) {
			m, err = stream.GetMsg(t.Context(), sequence)
			return err
		})
		var e numbered
		check(t, json.Unmarshal(m.Data, &e))
		stored[e.ChatUserID] = append(stored[e.ChatUserID], e.Message.Data.N)
	}
	w.checkNumbers(t, "the stream", stored)
	if err := context.Cause(w.bus.Lost()); err != nil {
		t.Errorf("the bus of the writers: got %v, want nothing lost", err)
	}
}

// checkHandled checks that the group handles every acknowledged event, in the order of its writer.
func (w *clusterWriters) checkHandled(t *testing.T) {
	t.Helper()
	eventually(t, "all events are handled", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if got, want := len(w.seen), int(w.acknowledged.Load()); got < want {
			return fmt.Errorf("got %d, want %d", got, want)
		}
		return nil
	})
	w.stopReading()
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%d deliveries were repeated", w.repeated)
	w.checkNumbers(t, "the group", w.handled)
}

// checkNumbers checks that each writer's numbers are there once, in order.
func (w *clusterWriters) checkNumbers(t *testing.T, place string, got map[string][]int) {
	t.Helper()
	for n, want := range w.last {
		numbers := got[writerName(n)]
		times := map[int]int{}
		for _, number := range numbers {
			times[number]++
		}
		lost, doubled := 0, len(numbers)-len(times)
		for number := range want {
			if times[number] == 0 {
				lost++
			}
		}
		if len(numbers) != want || lost > 0 || !slices.IsSorted(numbers) {
			t.Errorf("%s has %d events of writer %d, want %d in order: %d lost, %d doubled, sorted: %v",
				place, len(numbers), n, want, lost, doubled, slices.IsSorted(numbers))
		}
	}
}
