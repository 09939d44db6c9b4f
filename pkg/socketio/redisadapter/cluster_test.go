package redisadapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/coder/websocket"
	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/redisadapter"
)

// node is one server of a cluster under test. Its sockets join the room named in auth.
type node struct {
	t      *testing.T
	srv    *socketio.Server
	nsp    *socketio.Namespace
	url    string
	client redis.UniversalClient
}

func startNode(t *testing.T, client redis.UniversalClient, opts redisadapter.Options) *node {
	t.Helper()
	srv := socketio.NewServer(socketio.Options{Adapter: redisadapter.New(client, opts)})
	nsp := srv.Of("/message")
	nsp.Use(func(ctx context.Context, s *socketio.Socket) error {
		var auth struct{ Room string }
		if err := json.Unmarshal(s.Handshake().Auth, &auth); err != nil || auth.Room == "" {
			return err
		}
		return s.JoinContext(ctx, auth.Room)
	})
	hs := httptest.NewServer(srv)
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("closing a node: %v", err)
		}
		hs.Close()
		client.Close()
	})
	return &node{t: t, srv: srv, nsp: nsp, url: hs.URL, client: client}
}

// wire is a raw client.
type wire struct {
	t    *testing.T
	conn *websocket.Conn
	id   string
}

func (n *node) connect(room string) *wire {
	n.t.Helper()
	conn, _, err := websocket.Dial(n.t.Context(), n.url+"/socket.io/?EIO=4&transport=websocket", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.CloseNow() })
	w := &wire{t: n.t, conn: conn}
	w.read()
	w.write(fmt.Sprintf(`40/message,{"room":%q}`, room))
	answer := w.read()
	var data struct{ SID string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(answer, "40/message,")), &data); err != nil || data.SID == "" {
		n.t.Fatalf("got %s, want a CONNECT answer", answer)
	}
	w.id = data.SID
	return w
}

func (w *wire) write(text string) {
	w.t.Helper()
	if err := w.conn.Write(w.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

// read returns the next message that is no ping.
func (w *wire) read() string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	for {
		_, data, err := w.conn.Read(ctx)
		if err != nil {
			w.t.Fatalf("reading: %v", err)
		}
		if string(data) != "2" {
			return string(data)
		}
	}
}

func (w *wire) want(text string) {
	w.t.Helper()
	if got := w.read(); got != text {
		w.t.Fatalf("got %s, want %s", got, text)
	}
}

// backends are the ways to reach Redis; each runs the same tests.
func backends(t *testing.T, test func(t *testing.T, client func() redis.UniversalClient, opts redisadapter.Options)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		m := miniredis.RunT(t)
		test(t, func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: m.Addr()}) }, redisadapter.Options{})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		s := startRedis(t)
		test(t, func() redis.UniversalClient { return s.client() }, redisadapter.Options{})
	})
	t.Run("redis sharded", func(t *testing.T) {
		t.Parallel()
		s := startRedis(t)
		test(t, func() redis.UniversalClient { return s.client() }, redisadapter.Options{Sharded: true})
	})
	t.Run("cluster sharded", func(t *testing.T) {
		t.Parallel()
		s := startRedis(t, "--cluster-enabled", "yes")
		c := s.client()
		defer c.Close()
		if err := c.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the cluster is up", func() bool {
			info, err := c.ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok")
		})
		test(t, func() redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}})
		}, redisadapter.Options{Sharded: true})
	})
}

func TestClusterBroadcast(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, client func() redis.UniversalClient, opts redisadapter.Options) {
		a, b := startNode(t, client(), opts), startNode(t, client(), opts)
		alice, bob, eve := a.connect("room"), b.connect("room"), b.connect("other")

		if err := a.nsp.To("room").Emit("hi", json.RawMessage(`{"n": 1.0,"big":12345678901234567890123,"s":"é\u0041"}`), "offset"); err != nil {
			t.Fatal(err)
		}
		want := `42/message,["hi",{"n": 1.0,"big":12345678901234567890123,"s":"é\u0041"},"offset"]`
		alice.want(want)
		bob.want(want) // byte for byte

		if err := a.nsp.To("room", "other").Except(bob.id).Emit("some", 7, nil, true); err != nil {
			t.Fatal(err)
		}
		alice.want(`42/message,["some",7,null,true]`)
		eve.want(`42/message,["some",7,null,true]`)

		if err := a.nsp.To(bob.id).Emit("private", -3, 1.5); err != nil {
			t.Fatal(err)
		}
		bob.want(`42/message,["private",-3,1.5]`)

		if err := b.nsp.Emit("bytes", []byte{1, 2}, map[string]any{"b": []byte{3}}); err != nil {
			t.Fatal(err)
		}
		for _, w := range []*wire{alice, bob, eve} {
			w.want(`452-/message,["bytes",{"_placeholder":true,"num":0},{"b":{"_placeholder":true,"num":1}}]`)
			w.want("\x01\x02")
			w.want("\x03")
		}
	})
}

// Events that are emitted together arrive in their order, on the emitting node too.
func TestClusterEmitAll(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, client func() redis.UniversalClient, opts redisadapter.Options) {
		a, b := startNode(t, client(), opts), startNode(t, client(), opts)
		here, there := a.connect("red"), b.connect("blue")
		var events []*socketio.Broadcast
		for i := range 3 {
			for _, room := range []string{"red", "blue"} {
				events = append(events, &socketio.Broadcast{
					Selection: socketio.Selection{Rooms: []string{room}}, Data: fmt.Appendf(nil, `["%s",%d]`, room, i),
				})
			}
		}
		if errs := a.nsp.EmitAll(t.Context(), events); errs != nil {
			t.Fatal(errs)
		}
		for i := range 3 {
			here.want(fmt.Sprintf(`42/message,["red",%d]`, i))
			there.want(fmt.Sprintf(`42/message,["blue",%d]`, i))
		}
	})
}

// A broadcast's span goes to the other nodes with it.
func TestTracesCrossNodes(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	backends(t, func(t *testing.T, client func() redis.UniversalClient, opts redisadapter.Options) {
		a, b := startNode(t, client(), opts), startNode(t, client(), opts)
		got := make(chan string, 3)
		b.nsp.OnBroadcast(func(m *socketio.Broadcast) int { got <- m.TraceParent; return b.nsp.Deliver(m) })
		there := b.connect("red")
		for i, want := range []string{trace, "", trace} {
			event := &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{"red"}}, Data: fmt.Appendf(nil, `["red",%d]`, i), TraceParent: want}
			if i == 2 {
				event.Volatile, event.Except = true, []string{"blue"}
			}
			if errs := a.nsp.EmitAll(t.Context(), []*socketio.Broadcast{event}); errs != nil {
				t.Fatal(errs)
			}
			there.want(fmt.Sprintf(`42/message,["red",%d]`, i))
			if trace := <-got; trace != want {
				t.Errorf("event %d: got traceparent %q, want %q", i, trace, want)
			}
		}
	})
}

func TestClusterCommands(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, client func() redis.UniversalClient, opts redisadapter.Options) {
		a, b := startNode(t, client(), opts), startNode(t, client(), opts)
		alice, bob := a.connect("room"), b.connect("room")
		ctx := t.Context()

		infos, err := a.nsp.To("room").FetchSockets(ctx)
		if err != nil || len(infos) != 2 {
			t.Fatalf("got %v, %v, want two sockets", infos, err)
		}
		if err := a.nsp.To("room").Join(ctx, "more"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "bob joins", func() bool { return b.nsp.RoomSize("more") == 1 })
		if err := a.nsp.To("more").Emit("x"); err != nil {
			t.Fatal(err)
		}
		alice.want(`42/message,["x"]`)
		bob.want(`42/message,["x"]`)
		if err := b.nsp.To("more").Leave(ctx, "more"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "alice leaves", func() bool { return a.nsp.RoomSize("more") == 0 })

		events := make(chan string, 1)
		b.nsp.OnServerSideEmit(func(event string, args socketio.Args, _ func(any)) { events <- event + args.String(0) })
		if err := a.nsp.ServerSideEmit(ctx, "to-servers", "!"); err != nil {
			t.Fatal(err)
		}
		if got := <-events; got != "to-servers!" {
			t.Fatalf("got %q", got)
		}
		if err := a.nsp.DisconnectSockets("room"); err != nil {
			t.Fatal(err)
		}
		alice.want("41/message,")
		bob.want("41/message,")
	})
}

// TestJoinIsConfirmed emits on one node as soon as the CONNECT answer of the other has arrived.
func TestJoinIsConfirmed(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, client func() redis.UniversalClient, opts redisadapter.Options) {
		a, b := startNode(t, client(), opts), startNode(t, client(), opts)
		for i := range 50 {
			room := fmt.Sprint("r", i%3) // rooms are left and joined again all the time
			w := a.connect(room)
			if err := b.nsp.To(room).Emit("n", i); err != nil {
				t.Fatal(err)
			}
			w.want(fmt.Sprintf(`42/message,["n",%d]`, i))
			w.conn.CloseNow()
		}
	})
}

func TestOnlyHostedRoomsAreSubscribed(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	a := startNode(t, s.client(), redisadapter.Options{})
	startNode(t, s.client(), redisadapter.Options{})
	w := a.connect("room")
	ctx := t.Context()
	const channel = "socket.io#/message#room#"
	if n := a.client.PubSubNumSub(ctx, channel).Val()[channel]; n != 1 {
		t.Fatalf("got %d subscribers, want only the hosting node", n)
	}
	w.conn.CloseNow()
	eventually(t, "the room is given up", func() bool { return a.client.PubSubNumSub(ctx, channel).Val()[channel] == 0 })
}

func TestRedisGoesAndComesBack(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	down, back := make(chan struct{}, 8), make(chan time.Time, 8)
	opts := redisadapter.Options{
		PublishTimeout: time.Second,
		OnDisconnect:   func(string) { down <- struct{}{} },
		OnReconnect:    func(_ string, since time.Time) { back <- since },
	}
	a := startNode(t, s.client(), opts)
	b := startNode(t, s.client(), redisadapter.Options{})
	w := a.connect("room")
	before := time.Now()
	s.stop()
	<-down
	if err := b.nsp.To("room").Emit("lost"); err == nil {
		t.Fatal("publishing without Redis: got no error")
	}
	s.start()
	if since := <-back; since.After(time.Now()) || since.Before(before.Add(-time.Second)) {
		t.Errorf("got a gap since %v, want one from about %v", since, before)
	}
	if err := b.nsp.To("room").Emit("again"); err != nil {
		t.Fatal(err)
	}
	w.want(`42/message,["again"]`)
}

// TestSilentRedis stops the server's process, not its connections.
func TestSilentRedis(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	client := s.client()
	defer client.Close()
	adapter := redisadapter.New(client, redisadapter.Options{PublishTimeout: 100 * time.Millisecond})(&counter{})
	defer adapter.Close()
	hello := &socketio.Broadcast{Data: reply}
	eventually(t, "Redis is connected", func() bool { return adapter.Publish(t.Context(), hello) == nil }) // 100 ms may be short
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
			t.Error("publishing without an answer: got no error")
		}
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("got errors after %v, want them after the time limit", took)
	}
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Redis answers again", func() bool { return adapter.Publish(t.Context(), hello) == nil })
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
	conn, _, err := websocket.Dial(t.Context(), hs.URL+"/socket.io/?EIO=4&transport=websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	w := &wire{t: t, conn: conn}
	w.read()
	w.write("40/message,")
	if err := <-result; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a deadline error", err)
	}
	w.want(`44/message,{"message":"Connection refused"}`)
	if nsp.RoomSize("room") != 0 {
		t.Error("the room has a member")
	}
}

// TestClusterComesLate starts nodes before anybody answers: joins fail meanwhile, and what all nodes listen
// to is subscribed once the cluster is there.
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
		t.Error("subscribed without a cluster")
	}
	s.start()
	c := s.client()
	defer c.Close()
	if err := c.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an event for all arrives", func() bool {
		err := sender.Publish(t.Context(), &socketio.Broadcast{Data: reply})
		return err == nil && to.delivered.Load() > 0
	})
}
