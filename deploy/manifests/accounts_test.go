package manifests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nettest"
)

// openBus opens the bus of a service as its user, and fails on any permission violation.
func openBus(t testing.TB, s *server.Server, user string, streams ...string) *bus.Bus {
	t.Helper()
	u, err := url.Parse(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, user)
	name := user
	if user == "operator" {
		name = "parleyctl"
	}
	b, err := bus.Open(bus.Config{URL: u.String(), Name: name, Streams: streams, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	deadline := time.Now().Add(2 * patience)
	for err = b.Ready(t.Context()); err != nil && time.Now().Before(deadline); err = b.Ready(t.Context()) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("the bus of %s: %v", user, err)
	}
	return b
}

func companyMessage(chatID string) event.CompanyMessageAccepted {
	return event.CompanyMessageAccepted{
		CompanyID: "0b0f8e1c-6f5e-4a51-8d0a-3f1f4f1d2c33", ChatID: chatID,
		Message: chat.Message{
			ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now(), Type: chat.Text, NameOfSender: "Acme", IsFromSupport: true,
			Data: []byte(`{"text":"Your order 4711 has left our warehouse and arrives tomorrow."}`),
		},
	}
}

// startCluster starts three servers with deploy/nats.
func startCluster(t *testing.T) []*server.Server {
	t.Helper()
	dir := t.TempDir()
	config := strings.ReplaceAll(string(read(t, "deploy/nats/nats-server.conf")), "$NATS_MAX_FILE_STORE", "10GB")
	for name, text := range map[string]string{"nats-server.conf": config, "accounts.conf": accounts(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var routes []*url.URL
	var servers []*server.Server
	for n := range 3 {
		addr, err := nettest.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		route, err := url.Parse("nats://" + addr)
		if err != nil {
			t.Fatal(err)
		}
		routes = append(routes, route)
		options, err := server.ProcessConfigFile(filepath.Join(dir, "nats-server.conf"))
		if err != nil {
			t.Fatal(err)
		}
		options.ServerName, options.StoreDir, options.Host, options.Port = fmt.Sprintf("nats-%d", n), t.TempDir(), "127.0.0.1", server.RANDOM_PORT
		options.NoLog, options.NoSigs = true, true
		options.Cluster.Name, options.Cluster.Host, options.Routes = "parley", route.Hostname(), routes
		if _, err := fmt.Sscan(route.Port(), &options.Cluster.Port); err != nil {
			t.Fatal(err)
		}
		s, err := server.NewServer(options)
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
	}
	for _, s := range servers {
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	}
	deadline := time.Now().Add(4 * patience)
	for _, s := range servers {
		for !s.ReadyForConnections(patience) || !s.JetStreamIsCurrent() {
			if time.Now().After(deadline) {
				t.Fatal("the cluster did not form")
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return servers
}

// In a cluster, a service is often not connected to a stream's leader: requests and replies cross accounts and routes.
func TestAccountsInACluster(t *testing.T) {
	needs.Long(t)
	servers := startCluster(t)
	operator := openBus(t, servers[0], "operator", []string{}...)
	apply, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	for {
		_, err := operator.ApplyStreams(apply, bus.StreamSettings{Replicas: 3, MaxBytes: 8 << 20, FilesMaxBytes: 1 << 20, Partitions: 4})
		if err == nil {
			break
		}
		if apply.Err() != nil || !apperr.Is(err, apperr.Unavailable) { // the cluster is electing its leaders
			t.Fatal(err)
		}
	}
	const each = 20
	handled := make(chan string, 1000)
	consuming, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for _, s := range servers {
		processor := openBus(t, s, "processor", subject.Sends, subject.Replies, subject.Dead)
		running.Go(func() {
			err := processor.Consume(consuming, bus.Consumer{
				Stream: subject.Sends, Durable: "dispatcher", Filters: []string{subject.AllCompanyMessages},
				Handle: func(_ context.Context, d bus.Delivery) error { handled <- d.EventID(); return nil },
			})
			if err != nil {
				t.Error(err)
			}
		})
		widget := openBus(t, s, "widget-api", subject.Inbound, subject.Replies, subject.Status)
		stopAnswering, err := widget.RPC().HandleOrigins(func(context.Context, string) ([]string, error) { return []string{"https://a.example"}, nil })
		if err != nil {
			t.Fatal(err)
		}
		defer stopAnswering()
	}
	missing := map[string]bool{}
	for n, s := range servers {
		client := openBus(t, s, "client-api", subject.Sends)
		for range each {
			e := companyMessage(uuid.NewString())
			if err := client.Publish(t.Context(), event.Derived(), e); err != nil {
				t.Fatalf("publishing at server %d: %v", n, err)
			}
			missing[e.EventID()] = true
			if d, err := client.Accepted(t.Context(), e.CompanyID, e.EventID()); err != nil || d.EventID() != e.EventID() {
				t.Errorf("looking for a message at server %d: got %v, %v, want it", n, d.EventID(), err)
			}
		}
		gateway := openBus(t, s, "socket-gateway", subject.Replies, subject.Status, subject.Dead)
		if origins, found, err := gateway.RPC().AllowedOrigins(t.Context(), "app"); err != nil || !found || len(origins) != 1 {
			t.Errorf("asking at server %d: got %v, %v, %v, want the origins", n, origins, found, err)
		}
		revoked, told := make(chan string, 10), make(chan struct{})
		following, end := context.WithCancel(t.Context())
		running.Go(func() {
			defer close(told)
			gateway.FollowRevocations(following, func(chatUserID string, _ time.Time) { revoked <- chatUserID }, func(time.Duration) {})
		})
		who := uuid.NewString()
		if err := operator.RevokeVisitorTokens(t.Context(), "company", who, time.Now()); err != nil {
			t.Fatal(err)
		}
		for got := ""; got != who; {
			select {
			case got = <-revoked:
			case <-time.After(patience):
				t.Fatalf("server %d: no revocation", n)
			}
		}
		end()
		<-told
	}
	timeout := time.After(2 * patience)
	for len(missing) > 0 {
		select {
		case id := <-handled:
			delete(missing, id)
		case <-timeout:
			t.Fatalf("%d events were not handled", len(missing))
		}
	}
	for _, s := range servers {
		asker := openBus(t, s, "operator", []string{}...)
		if _, err := asker.Group(t.Context(), subject.Sends, "dispatcher"); err != nil {
			t.Error(err)
		}
		if _, err := asker.Progress(t.Context(), subject.Sends, "dispatcher", 1<<40); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("got %v, want no process to know the delivery", err)
		}
	}
}

// processorTime returns the CPU time of this process, including the embedded server.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkAccounts publishes and consumes the same events, by a user of the streams' account and by a service with its
// own account, on one server.
func BenchmarkAccounts(b *testing.B) {
	dir := b.TempDir()
	config := strings.ReplaceAll(string(read(b, "deploy/nats/nats-server.conf")), "$NATS_MAX_FILE_STORE", "40GB")
	for name, text := range map[string]string{"nats-server.conf": config, "accounts.conf": accounts(b)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	s := startNATS(b, filepath.Join(dir, "nats-server.conf"))
	operator := openBus(b, s, "operator", []string{}...)
	if _, err := operator.ApplyStreams(b.Context(), bus.StreamSettings{MaxBytes: 4 << 30, FilesMaxBytes: 1 << 20, Sync: bus.SyncNone}); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, publisher, consumer string }{
		{"streams_account", "operator", "operator"}, {"own_account", "client-api", "processor"},
	} {
		publisher, consumer := openBus(b, s, c.publisher, subject.Sends), openBus(b, s, c.consumer, subject.Sends)
		b.Run("publish/"+c.name, func(b *testing.B) {
			began := processorTime()
			publishAll(b, publisher)
			b.ReportMetric(float64(processorTime()-began)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
		b.Run("consume/"+c.name, func(b *testing.B) {
			stream, err := operator.Stream(b.Context(), subject.Sends)
			if err != nil {
				b.Fatal(err)
			}
			if err := stream.Purge(b.Context()); err != nil {
				b.Fatal(err)
			}
			publishAll(b, publisher)
			var handled atomic.Int64
			ctx, done := context.WithCancel(b.Context())
			b.ResetTimer()
			began := processorTime()
			if err := consumer.Consume(ctx, bus.Consumer{
				Stream: subject.Sends, Durable: "dispatcher-" + uuid.NewString(), Filters: []string{subject.AllCompanyMessages}, Concurrency: 128,
				Handle: func(context.Context, bus.Delivery) error {
					if handled.Add(1) == int64(b.N) {
						done()
					}
					return nil
				},
			}); err != nil && !errors.Is(err, context.Canceled) {
				b.Fatal(err)
			}
			b.ReportMetric(float64(processorTime()-began)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.Logf("heap %d MiB", m.HeapAlloc>>20)
}

func publishAll(b *testing.B, publisher *bus.Bus) {
	b.Helper()
	chats := make([]string, 256)
	for i := range chats {
		chats[i] = uuid.NewString()
	}
	var next atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := publisher.Publish(b.Context(), event.Derived(), companyMessage(chats[n%int64(len(chats))])); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
}

// A service's password is rotated without downtime, as described in docs/runbook.md: a second user is added to its
// account, then the first one is removed.
func TestSecondUserOfAnAccount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first, second = `{ user: client-api, password: "client-api" }`, `{ user: client-api-2, password: "client-api-2" }`
	text := accounts(t)
	if !strings.Contains(text, first) {
		t.Fatalf("accounts.conf does not have the user client-api as %s", first)
	}
	write("accounts.conf", text)
	write("nats-server.conf", fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream: {store_dir: %q}\ninclude accounts.conf\n", t.TempDir()))
	options, err := server.ProcessConfigFile(filepath.Join(dir, "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	options.NoLog, options.NoSigs = true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	applyStreams(t, s)
	old := natsConn(t, s, "client-api")
	publish := func(conn *nats.Conn) {
		t.Helper()
		if m, err := conn.Request("chat.in.push.a.b", []byte("{}"), patience); err != nil || !strings.Contains(string(m.Data), `"stream":"SENDS"`) {
			t.Errorf("got %+v, %v, want the event accepted", m, err)
		}
	}
	publish(old)
	write("accounts.conf", strings.Replace(text, first, first+", "+second, 1))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	publish(old)
	if old.Stats().Reconnects > 0 {
		t.Error("the connection was dropped")
	}
	publish(natsConn(t, s, "client-api-2"))
	write("accounts.conf", strings.Replace(text, first, second, 1))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	publish(natsConn(t, s, "client-api-2"))
	if _, err := nats.Connect(s.ClientURL(), nats.UserInfo("client-api", "client-api")); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("got %v as the removed user, want it rejected", err)
	}
}
