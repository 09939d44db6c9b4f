package redisadapter_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/adaptertest"
	"github.com/parley-chat/parley/pkg/socketio/internal/testenv"
	"github.com/parley-chat/parley/pkg/socketio/redisadapter"
)

// TestAdapter runs the adapter contract on each Redis deployment and format.
func TestAdapter(t *testing.T) {
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		m := miniredis.RunT(t)
		adaptertest.Test(t, adaptertest.Broker{
			Adapter: func(t testing.TB) adaptertest.Adapter {
				return newAdapter(t, redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1}), redisadapter.Options{})
			},
			Stop: m.Close,
			Start: func() {
				if err := m.Restart(); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
	for name, opts := range map[string]redisadapter.Options{"classic": {}, "sharded": {Sharded: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startRedis(t)
			adaptertest.Test(t, adaptertest.Broker{
				Adapter: func(t testing.TB) adaptertest.Adapter { return newAdapter(t, s.client(), opts) },
				Stop:    s.stop, Start: s.start,
			})
		})
	}
	t.Run("sharded on a cluster", func(t *testing.T) {
		t.Parallel()
		s := startRedis(t, "--cluster-enabled", "yes")
		s.formCluster()
		adaptertest.Test(t, adaptertest.Broker{
			Adapter: func(t testing.TB) adaptertest.Adapter {
				return newAdapter(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, MaxRetries: -1}), redisadapter.Options{Sharded: true})
			},
			Stop: s.stop, Start: func() { s.start(); s.formCluster() },
		})
	})
}

// newAdapter calls redisadapter.New with a client that is closed after the node.
func newAdapter(t testing.TB, client redis.UniversalClient, opts redisadapter.Options) adaptertest.Adapter {
	t.Cleanup(func() { client.Close() })
	return redisadapter.New(client, opts)
}

func TestOnlyHostedRoomsAreSubscribed(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	client := s.client()
	a := adaptertest.StartNode(t, "/message", newAdapter(t, client, redisadapter.Options{}))
	adaptertest.StartNode(t, "/message", newAdapter(t, s.client(), redisadapter.Options{}))
	w := a.Connect(t, "room")
	ctx := t.Context()
	const channel = "socket.io#/message#room#"
	if n := client.PubSubNumSub(ctx, channel).Val()[channel]; n != 1 {
		t.Fatalf("got %d subscribers, want only the hosting node", n)
	}
	w.Close()
	testenv.Eventually(t, "the room is given up", func() bool { return client.PubSubNumSub(ctx, channel).Val()[channel] == 0 })
}

// TestGapIsReported: the callbacks report the loss of Redis and its time; when OnReconnect is called, all
// subscriptions are restored.
func TestGapIsReported(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	down, back := make(chan struct{}, 8), make(chan time.Time, 8)
	opts := redisadapter.Options{
		PublishTimeout: time.Second,
		OnDisconnect:   func(string) { down <- struct{}{} },
		OnReconnect:    func(_ string, since time.Time) { back <- since },
	}
	a := adaptertest.StartNode(t, "/message", newAdapter(t, s.client(), opts))
	b := adaptertest.StartNode(t, "/message", newAdapter(t, s.client(), redisadapter.Options{}))
	w := a.Connect(t, "room")
	before := time.Now()
	s.stop()
	<-down
	s.start()
	if since := <-back; since.After(time.Now()) || since.Before(before.Add(-time.Second)) {
		t.Errorf("got a gap since %v, want one from about %v", since, before)
	}
	if err := b.To("room").Emit("again"); err != nil { // at once: the subscriptions are back
		t.Fatal(err)
	}
	w.WantEvent(`["again"]`)
}

// TestSilentRedis suspends the server's process; its connections stay open.
func TestSilentRedis(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	client := s.client()
	defer client.Close()
	adapter := redisadapter.New(client, redisadapter.Options{PublishTimeout: 100 * time.Millisecond})(&counter{})
	defer adapter.Close()
	hello := &socketio.Broadcast{Data: reply}
	testenv.Eventually(t, "Redis is connected", func() bool { return adapter.Publish(t.Context(), hello) == nil }) // 100 ms may be short
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	const several = 5
	results := make(chan error, several)
	start := time.Now()
	for range several {
		go func() { results <- adapter.Publish(t.Context(), hello) }()
	}
	for range several {
		if err := <-results; err == nil {
			t.Error("publish without a response: got no error, want one")
		}
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("got errors after %v, want them after the timeout", took)
	}
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "Redis answers again", func() bool { return adapter.Publish(t.Context(), hello) == nil })
}

func TestJoinWithoutRedis(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: freeAddr(t), MaxRetries: -1})
	srv := socketio.NewServer(socketio.Options{Adapter: redisadapter.New(client, redisadapter.Options{})})
	defer client.Close()
	defer srv.Close()
	nsp := srv.Of("/message")
	result := make(chan error, 1)
	nsp.Use(func(ctx context.Context, s *socketio.Socket) error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		err := s.JoinContext(ctx, "room")
		result <- err
		return err
	})
	hs := httptest.NewServer(srv)
	defer hs.Close()
	w := adaptertest.Dial(t, hs.URL)
	w.Write("40/message,")
	if err := <-result; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a deadline error", err)
	}
	w.Want(`44/message,{"message":"Connection refused"}`)
	if nsp.RoomSize("room") != 0 {
		t.Error("got a member in the room, want none")
	}
}

// TestClusterComesLate starts nodes before the cluster is reachable: joins fail meanwhile, and the channels of
// all nodes are subscribed once it is.
func TestClusterComesLate(t *testing.T) {
	t.Parallel()
	s := startRedis(t, "--cluster-enabled", "yes")
	s.stop()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, MaxRetries: -1, DialTimeout: time.Second})
	defer client.Close()
	from, to := &counter{}, &counter{want: 1, done: make(chan struct{}, 1)}
	start := redisadapter.New(client, redisadapter.Options{Sharded: true})
	sender, receiver := start(from), start(to)
	defer sender.Close()
	defer receiver.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := receiver.Subscribe(ctx, "room"); err == nil {
		t.Error("got a subscription without a cluster, want an error")
	}
	s.start()
	s.formCluster()
	testenv.Eventually(t, "an event for all arrives", func() bool {
		err := sender.Publish(t.Context(), &socketio.Broadcast{Data: reply})
		return err == nil && to.delivered.Load() > 0
	})
}
