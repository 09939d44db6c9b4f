package socketio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// harness is a server with raw clients.
type harness struct {
	t   *testing.T
	srv *Server
	url string
}

func newHarness(t *testing.T, opts Options) *harness {
	srv := NewServer(opts)
	hs := httptest.NewServer(srv)
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		hs.Close()
	})
	return &harness{t: t, srv: srv, url: hs.URL + "/socket.io/?EIO=4&transport=websocket"}
}

type wire struct {
	t    *testing.T
	conn *websocket.Conn
}

func (h *harness) dial() *wire {
	h.t.Helper()
	conn, _, err := websocket.Dial(h.t.Context(), h.url, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(1 << 24)
	w := &wire{t: h.t, conn: conn}
	w.read()
	return w
}

// connect joins a namespace and returns the socket's ID.
func (w *wire) connect(nsp, auth string) string {
	w.t.Helper()
	if nsp != "/" {
		auth = nsp + "," + auth
	}
	w.write("40" + auth)
	answer := w.read()
	var data struct{ SID string }
	if err := json.Unmarshal([]byte(answer[strings.Index(answer, "{"):]), &data); err != nil || data.SID == "" {
		w.t.Fatalf("got %s, want a CONNECT answer", answer)
	}
	return data.SID
}

func (w *wire) write(text string) {
	w.t.Helper()
	if err := w.conn.Write(w.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) writeBinary(b ...byte) {
	w.t.Helper()
	if err := w.conn.Write(w.t.Context(), websocket.MessageBinary, b); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) read() string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	_, data, err := w.conn.Read(ctx)
	if err != nil {
		w.t.Fatalf("reading: %v", err)
	}
	return string(data)
}

func (w *wire) want(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if got := w.read(); got != text {
			w.t.Fatalf("got %s, want %s", got, text)
		}
	}
}

func (w *wire) wantClosed() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	for {
		if _, data, err := w.conn.Read(ctx); ctx.Err() != nil {
			w.t.Fatal("not closed")
		} else if err != nil {
			return
		} else if string(data) != "2" {
			w.t.Fatalf("got %s, want a close", data)
		}
	}
}

// suite sets up the server that the protocol's own test suite expects.
func suite(t *testing.T) *harness {
	h := newHarness(t, Options{PingInterval: 10 * time.Second})
	h.srv.Of("/").OnConnection(func(s *Socket) {
		_ = s.Emit("auth", s.Handshake().Auth)
		s.On("message", func(args Args, _ Ack) { _ = s.Emit("message-back", args.Values()...) })
		s.On("message-with-ack", func(args Args, ack Ack) { _ = ack(args.Values()...) })
	})
	h.srv.Of("/custom").OnConnection(func(s *Socket) { _ = s.Emit("auth", s.Handshake().Auth) })
	return h
}

func TestConnect(t *testing.T) {
	t.Parallel()
	h := suite(t)
	for _, tc := range []struct{ nsp, auth, event string }{
		{"/", "", `42["auth",{}]`},
		{"/", `{"token":"123"}`, `42["auth",{"token":"123"}]`},
		{"/custom", "", `42/custom,["auth",{}]`},
		{"/custom", `{"token":"abc"}`, `42/custom,["auth",{"token":"abc"}]`},
	} {
		w := h.dial()
		w.connect(tc.nsp, tc.auth)
		w.want(tc.event)
	}
	w := h.dial()
	w.write("40/random")
	w.want(`44/random,{"message":"Invalid namespace"}`)
}

func TestBreachesCloseTheConnection(t *testing.T) {
	t.Parallel()
	h := suite(t)
	for _, text := range []string{
		"4abc", "40[]", `40"x"`, "42[\"message\"]", "41", "43[]", "451-[\"message\",{}]", // before CONNECT
	} {
		w := h.dial()
		w.write(text)
		w.wantClosed()
	}
	for _, text := range []string{
		"4abc", "42{}", "42[]", "42", `42["connect"]`, `42abc["message-with-ack",1]`, "43{}", `44{"message":"x"}`, "41{}", "40",
		`451-["message",{"_placeholder":true,"num":0}]` + "\n", `451-["message",{"_placeholder":true,"num":7}]`, `4599-["message"]`,
	} {
		w := h.dial()
		w.connect("/", "")
		w.want(`42["auth",{}]`)
		w.write(text)
		if strings.HasPrefix(text, "451-") {
			if strings.HasSuffix(text, "\n") {
				w.write(`42["message"]`)
			} else {
				w.writeBinary(1)
			}
		}
		w.wantClosed()
	}
	w := h.dial()
	w.connect("/", "")
	w.want(`42["auth",{}]`)
	w.writeBinary(1)
	w.wantClosed()
}

func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{ConnectTimeout: 50 * time.Millisecond})
	h.srv.Of("/").Use(func(ctx context.Context, s *Socket) error {
		<-ctx.Done() // the client is gone, at the latest
		return ctx.Err()
	})
	h.dial().wantClosed()
	w := h.dial()
	w.write("40")
	w.wantClosed()
}

func TestMessages(t *testing.T) {
	t.Parallel()
	w := suite(t).dial()
	w.connect("/", "")
	w.want(`42["auth",{}]`)
	w.write(`42["message",1,"2",{"3":[true]}]`)
	w.want(`42["message-back",1,"2",{"3":[true]}]`)
	const two = `{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`
	w.write(`452-["message",` + two)
	w.writeBinary(1, 2, 3)
	w.writeBinary(4, 5, 6)
	w.want(`452-["message-back",`+two, "\x01\x02\x03", "\x04\x05\x06")
	w.write(`42456["message-with-ack",1,"2",{"3":[false]}]`)
	w.want(`43456[1,"2",{"3":[false]}]`)
	w.write(`452-789["message-with-ack",` + two)
	w.writeBinary(1, 2, 3)
	w.writeBinary(4, 5, 6)
	w.want(`462-789[`+two, "\x01\x02\x03", "\x04\x05\x06")
	w.write(`42["unknown"]`)
	w.connect("/custom", "")
	w.want(`42/custom,["auth",{}]`)
	w.write("41/custom")
	w.write(`42/custom,["crossing"]`) // no breach: the server may have left as well
	w.write(`42["message","main"]`)
	w.want(`42["message-back","main"]`)
}

func TestMiddlewareRefusals(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{MaxConnectErrors: 4})
	errs := map[string]error{
		"coded":  &ConnectError{Message: "Unauthorized", Data: map[string]string{"code": "UNAUTHORIZED"}},
		"secret": errors.New("database password is hunter2"),
	}
	h.srv.Of("/").Use(func(_ context.Context, s *Socket) error {
		var auth struct{ Try string }
		_ = json.Unmarshal(s.Handshake().Auth, &auth)
		if auth.Try == "panic" {
			panic("boom")
		}
		return errs[auth.Try]
	})
	w := h.dial()
	w.write(`40{"try":"coded"}`)
	w.want(`44{"message":"Unauthorized","data":{"code":"UNAUTHORIZED"}}`)
	w.write(`40{"try":"secret"}`)
	w.want(`44{"message":"Connection refused"}`)
	w.write(`40{"try":"panic"}`)
	w.want(`44{"message":"Connection refused"}`)
	w.connect("/", `{}`) // the connection itself is still good
}

// TestBlockedMiddlewareBlocksNobody blocks one client in a middleware.
func TestBlockedMiddlewareBlocksNobody(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	gate := make(chan struct{})
	h.srv.Of("/").Use(func(ctx context.Context, s *Socket) error {
		if string(s.Handshake().Auth) == `{"slow":true}` {
			<-gate
		}
		return s.Join("room")
	})
	h.srv.Of("/other")
	slow := h.dial()
	slow.write(`40{"slow":true}`)
	slow.connect("/other", "") // not even the same connection
	fast := h.dial()
	fast.connect("/", "")
	if err := h.srv.Of("/").To("room").Emit("hi"); err != nil {
		t.Fatal(err)
	}
	fast.want(`42["hi"]`)
	close(gate)
	if got := slow.read(); !strings.HasPrefix(got, `40{"sid":`) {
		t.Errorf("got %s", got)
	}
}

// TestOrderOfConnecting checks the order of the first packets, with emits and broadcasts during the connect.
func TestOrderOfConnecting(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	nsp := h.srv.Of("/")
	nsp.Use(func(ctx context.Context, s *Socket) error {
		if err := s.Join("room"); err != nil {
			return err
		}
		_ = nsp.To("room").Emit("live", 1)
		_ = s.Emit("own")
		s.HoldBroadcasts()
		_ = nsp.To("room").Emit("live", 2)
		return s.AddAnswer("pid", "p1")
	})
	nsp.OnConnection(func(s *Socket) {
		_ = nsp.To("room").Emit("live", 3)
		_ = s.Emit("missed")
		s.ReleaseBroadcasts(func(b *Broadcast) bool { return string(b.Data) != `["live",2]` })
		_ = nsp.To("room").Emit("live", 4)
		s.On("e", func(Args, Ack) { _ = s.Emit("done") })
	})
	w := h.dial()
	w.write("40")
	w.write(`42["e"]`[:0] + "40"[:0] + "3") // a stray pong is harmless
	if got := w.read(); !strings.HasSuffix(got, `,"pid":"p1"}`) {
		t.Fatalf("got %s, want the pid in the answer", got)
	}
	w.want(`42["own"]`, `42["missed"]`, `42["live",1]`, `42["live",3]`, `42["live",4]`)
	w.write(`42["e"]`)
	w.want(`42["done"]`)
}

func TestEmitWithAck(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	sockets := make(chan *Socket, 1)
	h.srv.Of("/").OnConnection(func(s *Socket) {
		s.On("ask-me", func(_ Args, ack Ack) { // a handler may wait for the client
			answer, err := s.EmitWithAck(context.Background(), "question")
			_ = ack(answer.String(0), err == nil)
		})
		sockets <- s
	})
	w := h.dial()
	w.connect("/", "")
	s := <-sockets
	w.write(`427["ask-me"]`)
	w.want(`420["question"]`)
	w.write(`430["answer"]`)
	w.want(`437["answer",true]`)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.EmitWithAck(ctx, "late"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a deadline error", err)
	}
	w.want(`421["late"]`)
	w.write(`431[]`) // too late: ignored
	result := make(chan error, 1)
	go func() {
		_, err := s.EmitWithAck(context.Background(), "never")
		result <- err
	}()
	w.want(`422["never"]`)
	w.conn.CloseNow()
	if err := <-result; !errors.Is(err, ErrDisconnected) {
		t.Errorf("got %v, want ErrDisconnected", err)
	}
	if err := s.Emit("x"); !errors.Is(err, ErrDisconnected) {
		t.Errorf("got %v, want ErrDisconnected", err)
	}
	if err := s.Join("x"); !errors.Is(err, ErrDisconnected) {
		t.Errorf("got %v, want ErrDisconnected", err)
	}
}

func TestDisconnects(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	reasons := make(chan string, 4)
	sockets := make(chan *Socket, 4)
	nsp := h.srv.Of("/")
	nsp.OnConnection(func(s *Socket) {
		var events atomic.Int32
		s.On("e", func(Args, Ack) { events.Add(1) })
		s.OnDisconnect(func(reason string) { reasons <- fmt.Sprint(reason, " after ", events.Load()) })
		_ = s.Join("room")
		sockets <- s
	})
	check := func(want string) {
		t.Helper()
		if got := <-reasons; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := nsp.RoomSize("room"); n != 0 {
			t.Errorf("got %d in the room, want none", n)
		}
		<-sockets
	}
	w := h.dial()
	w.connect("/", "")
	w.write(`42["e"]`)
	w.write(`42["e"]`)
	w.write("41")
	check("client namespace disconnect after 2")

	w.connect("/", "") // again, over the same connection
	if err := nsp.DisconnectSockets("room"); err != nil {
		t.Fatal(err)
	}
	for nsp.RoomSize("room") == 0 && len(reasons) == 0 { // the join may not have happened yet
		_ = nsp.DisconnectSockets("room")
	}
	_ = nsp.DisconnectSockets("room")
	w.want("41")
	check("server namespace disconnect after 0")

	w.connect("/", "")
	s := <-sockets
	s.Disconnect(true)
	w.want("41")
	w.wantClosed()
	sockets <- s
	check("server namespace disconnect after 0")

	w = h.dial()
	w.connect("/", "")
	w.conn.CloseNow()
	check("transport close after 0")
}

// A socket that is disconnected as soon as it is in its namespace sends DISCONNECT after the CONNECT answer.
func TestDisconnectDuringConnectIsTold(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	nsp := h.srv.Of("/")
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				for _, s := range nsp.Sockets() {
					s.Disconnect(false)
				}
			}
		}
	})
	defer wg.Wait()
	defer close(done)
	w := h.dial()
	for range 300 {
		w.connect("/", "")
		w.want("41")
	}
}

// TestRoomsAreCounted tests only the counts; package adaptertest tests the delivery to rooms.
func TestRoomsAreCounted(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	nsp := h.srv.Of("/")
	nsp.Use(func(_ context.Context, s *Socket) error {
		var auth struct{ Rooms []string }
		_ = json.Unmarshal(s.Handshake().Auth, &auth)
		return s.Join(auth.Rooms...)
	})
	a, b := h.dial(), h.dial()
	idA := a.connect("/", `{"rooms":["x","y","x"]}`)
	b.connect("/", `{"rooms":["y"]}`)
	if err := nsp.To("x", "y").Emit("both"); err != nil {
		t.Fatal(err)
	}
	a.want(`42["both"]`)
	b.want(`42["both"]`)
	if nsp.RoomSize("y") != 2 || len(nsp.Rooms()) != 2 || nsp.SocketCount() != 2 {
		t.Errorf("got %d in y, rooms %v, %d sockets", nsp.RoomSize("y"), nsp.Rooms(), nsp.SocketCount())
	}
	if st := h.srv.Stats(); st.Sessions != 2 || st.WebSocketSessions != 2 || st.Rooms != 2 || st.Sockets != 2 || st.Delivered == 0 {
		t.Errorf("got %+v", st)
	}
	nsp.Socket(idA).Leave("x")
	if nsp.RoomSize("x") != 0 {
		t.Error("got the socket in room x, want it removed")
	}
	if err := nsp.To("y").Emit("disconnect"); !errors.Is(err, ErrReserved) {
		t.Errorf("got %v, want ErrReserved", err)
	}
}

func TestLargeRoom(t *testing.T) {
	t.Parallel()
	r := newRooms()
	sockets := make([]*Socket, 1000)
	for i := range sockets {
		sockets[i] = &Socket{}
		r.add("x", sockets[i])
	}
	for _, i := range rand.Perm(len(sockets)) {
		r.remove("x", sockets[i])
		r.remove("x", sockets[i])
	}
	if r.size("x") != 0 || r.count() != 0 {
		t.Errorf("got %d members, %d rooms", r.size("x"), r.count())
	}
}

func TestInboxHoldsAFloodingClientBack(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{})
	gate, seen := make(chan struct{}), make(chan int, 10*maxInbox)
	h.srv.Of("/").OnConnection(func(s *Socket) {
		s.On("e", func(args Args, _ Ack) {
			<-gate
			var n int
			_ = args.Bind(&n)
			seen <- n
		})
	})
	w := h.dial()
	w.connect("/", "")
	for i := range 10 * maxInbox {
		w.write(fmt.Sprintf(`42["e",%d]`, i))
	}
	s := h.srv.Of("/").Sockets()[0]
	s.mu.Lock()
	waiting := len(s.inbox.items)
	s.mu.Unlock()
	if waiting > maxInbox {
		t.Errorf("got %d events waiting, want at most %d", waiting, maxInbox)
	}
	close(gate)
	for i := range 10 * maxInbox {
		if got := <-seen; got != i {
			t.Fatalf("got event %d, want %d", got, i)
		}
	}
}

// TestChurn connects, joins, emits and disconnects at random, for -race and goleak.
func TestChurn(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Options{PingInterval: 50 * time.Millisecond, PingTimeout: 30 * time.Millisecond, ConnectTimeout: 200 * time.Millisecond, SendBuffer: 4096})
	nsp := h.srv.Of("/")
	nsp.Use(func(_ context.Context, s *Socket) error { return s.Join(fmt.Sprint("r", rand.IntN(3))) })
	nsp.OnConnection(func(s *Socket) {
		s.On("go", func(args Args, ack Ack) {
			_ = nsp.To("r0", "r1").Emit("x", args.Values()...)
			_ = ack()
			switch rand.IntN(8) {
			case 0:
				s.Disconnect(rand.IntN(2) == 0)
			case 1:
				s.Leave("r0")
			}
		})
		s.OnDisconnect(func(string) { _ = nsp.Emit("left") })
	})
	stop := time.Now().Add(time.Second)
	var wg sync.WaitGroup
	var connected atomic.Int64
	for range 8 {
		wg.Go(func() {
			for time.Now().Before(stop) {
				conn, _, err := websocket.Dial(context.Background(), h.url, nil)
				if err != nil {
					continue // on a busy machine the handshake may outlast the ping timeout
				}
				connected.Add(1)
				for range rand.IntN(10) {
					text := []string{"40", `42["go",1]`, `421["go"]`, "41", "3", "4bad"}[rand.IntN(60)/11]
					_ = conn.Write(context.Background(), websocket.MessageText, []byte(text))
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(20))*time.Millisecond)
				for {
					if _, _, err := conn.Read(ctx); err != nil {
						break
					}
				}
				cancel()
				conn.CloseNow()
			}
		})
	}
	for time.Now().Before(stop) {
		_ = nsp.Emit("tick", strings.Repeat("x", rand.IntN(3000)))
	}
	wg.Wait()
	if connected.Load() == 0 {
		t.Error("got no connection")
	}
	for deadline := time.Now().Add(10 * time.Second); h.srv.Stats() != (Stats{Delivered: h.srv.Stats().Delivered}); {
		if time.Now().After(deadline) {
			t.Fatalf("got %+v, want nothing left", h.srv.Stats())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestShutdownTellsClientsToReconnect(t *testing.T) {
	t.Parallel()
	srv := NewServer(Options{})
	reasons := make(chan string, 1)
	srv.Of("/").OnConnection(func(s *Socket) { s.OnDisconnect(func(r string) { reasons <- r }) })
	hs := httptest.NewServer(srv)
	defer hs.Close()
	h := &harness{t: t, srv: srv, url: hs.URL + "/socket.io/?EIO=4&transport=websocket"}
	w := h.dial()
	w.connect("/", "")
	done := make(chan error, 1)
	go func() { done <- srv.Close() }()
	w.wantClosed() // and no DISCONNECT packet, after which clients stay away
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := <-reasons; got != "server shutting down" {
		t.Errorf("got %q", got)
	}
	if _, res, err := websocket.Dial(t.Context(), h.url, nil); err == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %v, want 503 after the end", err)
	}
}
