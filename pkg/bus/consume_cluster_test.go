package bus_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// A consumer whose connection is to another server than its stream reaches its limits again and again.
// Nothing that the stream's server sent is lost on the way, where it would wait for its redelivery.
func TestBackPressureInACluster(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	servers := startCluster(t)
	conn, err := nats.Connect(servers[0].ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	leader := ""
	for _, config := range (bus.StreamSettings{Sync: bus.SyncNone, MaxBytes: 64 << 20, Partitions: 8}).Streams() {
		timetest.Until(t, "the cluster creates the stream "+config.Name, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			stream, err := js.CreateOrUpdateStream(ctx, config)
			if err == nil && config.Name == subject.Replies {
				leader = stream.CachedInfo().Cluster.Leader
			}
			return err == nil
		})
	}
	near := slices.IndexFunc(servers, func(s *server.Server) bool { return s.Name() == leader })
	far := (near + 1) % len(servers)

	const keys, each = 100, 80 // several times the limit
	publishAll(t, bustest.Open(t, servers[near].ClientURL()), keys, 0, each)
	var handled, redelivered atomic.Int64
	all := make(chan struct{})
	consume(t, bustest.Open(t, servers[far].ClientURL()), bus.Consumer{AckWait: 20 * time.Second, Handle: func(_ context.Context, d bus.Delivery) error {
		if d.Attempt > 1 {
			redelivered.Add(1)
		}
		time.Sleep(time.Millisecond) // slower than the stream
		if handled.Add(1) == keys*each {
			close(all)
		}
		return nil
	}})
	receive(t, "all deliveries", all)
	if n := redelivered.Load(); n > 0 {
		t.Errorf("got %d redeliveries, want none", n)
	}
}

// startCluster starts three NATS servers with JetStream, which stop when the test ends.
func startCluster(t *testing.T) (servers []*server.Server) {
	t.Helper()
	var routes []*url.URL
	for range 3 {
		routes = append(routes, &url.URL{Scheme: "nats", Host: nettest.Addr(t)})
	}
	for n, route := range routes {
		port, err := strconv.Atoi(route.Port())
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("nats-%d", n), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
			MaxPayload: 2 << 20, Cluster: server.ClusterOpts{Name: "parley", Host: "127.0.0.1", Port: port}, Routes: routes,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers = append(servers, s)
	}
	return servers
}

// A cluster drops requests until it has elected a leader: applying the streams asks again.
func TestApplyWaitsForTheLeaders(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	servers := startCluster(t)
	b := bustest.OpenConfig(t, bus.Config{URL: servers[0].ClientURL(), Observe: true})
	settings := bus.StreamSettings{Replicas: 3, MaxBytes: 8 << 20, FilesMaxBytes: 1 << 20, Partitions: 4}
	changes, err := b.ApplyStreams(t.Context(), settings)
	if got := changed(t, changes, err); len(got) != len(settings.Streams()) {
		t.Errorf("got %v created, want all streams", got)
	}
}
