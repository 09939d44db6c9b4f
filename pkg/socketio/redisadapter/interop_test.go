package redisadapter_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/adaptertest"
	"github.com/parley-chat/parley/pkg/socketio/internal/testenv"
	"github.com/parley-chat/parley/pkg/socketio/redisadapter"
)

func (s *redisServer) port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}

// TestOfficialEmitter emits into rooms with @socket.io/redis-emitter.
func TestOfficialEmitter(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	n := adaptertest.StartNode(t, "/message", newAdapter(t, s.client(), redisadapter.Options{}))
	alice, bob, gone := n.Connect(t, "room"), n.Connect(t, "room"), n.Connect(t, "room that goes")
	testenv.RunNode(t, "emitter.js", s.port(), "room", alice.ID, gone.ID)

	one := `42/message,["one",{"text":"héllo","n":[1,-2,3.5,null,true]},9007199254740992]`
	two := `42/message,["two","1970-01-01T00:00:00.000Z",null]`
	bob.Want(one)
	bob.Want(two)
	bob.Want(`42/message,["all"]`)
	alice.Want(one)
	alice.Want(`452-/message,["private",{"_placeholder":true,"num":0},{"nested":{"_placeholder":true,"num":1}}]`)
	alice.Want("\x01\x02\x03")
	alice.Want("\x04")
	alice.Want(`42/message,["all"]`)
	gone.Want(`42/message,["all"]`)
	gone.Want("41/message,")
	testenv.Eventually(t, "sockets join", func() bool { return n.RoomSize("late") == 2 && n.RoomSize("42") == 2 })
}

// peer is an official server.
type peer struct {
	t     *testing.T
	url   string
	in    io.Writer
	lines chan []json.RawMessage
}

func startPeer(t *testing.T, redisPort, mode string) *peer {
	t.Helper()
	cmd := testenv.Node(t.Context(), t, "peer.js", redisPort, mode)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, in: in, lines: make(chan []json.RawMessage, 16)}
	go p.read(out)
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		for range p.lines {
		}
		_ = cmd.Wait()
	})
	var port json.Number
	p.answer("listening", &port)
	p.url = "http://127.0.0.1:" + port.String()
	return p
}

func (p *peer) read(out io.Reader) {
	defer close(p.lines)
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		var values []json.RawMessage
		if json.Unmarshal(scanner.Bytes(), &values) == nil {
			p.lines <- values
		}
	}
}

func (p *peer) do(command ...any) {
	p.t.Helper()
	line, err := json.Marshal(command)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		p.t.Fatal(err)
	}
}

// answer waits for a line with a name and decodes its value.
func (p *peer) answer(name string, dst any) {
	p.t.Helper()
	select {
	case values, ok := <-p.lines:
		if !ok {
			p.t.Fatalf("the peer ended, want %s", name)
		}
		if string(values[0]) != `"`+name+`"` {
			p.t.Fatalf("got %s, want %s", values, name)
		}
		if err := json.Unmarshal(values[1], dst); err != nil {
			p.t.Fatalf("got %s: %v", values, err)
		}
	case <-time.After(20 * time.Second):
		p.t.Fatalf("no %s from the peer", name)
	}
}

// TestOfficialServer shares rooms with an official Node server.
func TestOfficialServer(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"classic", "sharded"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := startRedis(t)
			ours := adaptertest.StartNode(t, "/message", newAdapter(t, s.client(), redisadapter.Options{Sharded: mode == "sharded"}))
			theirs := startPeer(t, s.port(), mode)
			alice := ours.Connect(t, "room")
			bob := adaptertest.Connect(t, theirs.url, "/message", "room")
			bob.Want(`42/message,["joined"]`)
			testBroadcasts(t, ours, theirs, alice, bob)
			testRequests(t, ours, theirs, alice, mode)
			theirs.do("disconnect", "room")
			alice.Want("41/message,")
			bob.Want("41/message,")
		})
	}
}

func testBroadcasts(t *testing.T, ours *adaptertest.Node, theirs *peer, alice, bob *adaptertest.Client) {
	if err := ours.To("room").Emit("go", map[string]any{"x": 1}, []byte{5}); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*adaptertest.Client{alice, bob} {
		w.Want(`451-/message,["go",{"x":1},{"_placeholder":true,"num":0}]`)
		w.Want("\x05")
	}
	if err := ours.To(bob.ID).Emit("private", "über"); err != nil {
		t.Fatal(err)
	}
	bob.Want(`42/message,["private","über"]`)
	described := &socketio.Broadcast{
		Selection: socketio.Selection{Rooms: []string{"room"}}, Data: []byte(`["described",1]`),
		Metadata: map[string]string{"offset": "12"},
	}
	if errs := ours.EmitAll(t.Context(), []*socketio.Broadcast{described}); errs != nil {
		t.Fatal(errs)
	}
	for _, w := range []*adaptertest.Client{alice, bob} { // an official node ignores the metadata
		w.Want(`42/message,["described",1]`)
	}
	theirs.do("emit", alice.ID, "private", 1)
	alice.Want(`42/message,["private",1]`)
	theirs.do("emit", "room", "node", map[string]any{"a": []any{1.25, nil}})
	theirs.do("emitBinary", "room")
	theirs.do("emitAll", "all")
	for _, w := range []*adaptertest.Client{alice, bob} {
		w.Want(`42/message,["node",{"a":[1.25,null]}]`)
		w.Want(`452-/message,["bin",{"_placeholder":true,"num":0},{"b":{"_placeholder":true,"num":1}}]`)
		w.Want("\x09\x08")
		w.Want("\x07")
		w.Want(`42/message,["all"]`)
	}
}

func testRequests(t *testing.T, ours *adaptertest.Node, theirs *peer, alice *adaptertest.Client, mode string) {
	ours.Socket(alice.ID).SetData(map[string]string{"name": "alice"})
	theirs.do("fetch", "room")
	var fetched [][]json.RawMessage
	theirs.answer("fetched", &fetched)
	if len(fetched) != 2 {
		t.Errorf("got sockets %s on the peer, want two", fetched)
	}
	infos, err := ours.To("room").FetchSockets(t.Context())
	if err != nil || len(infos) != 2 {
		t.Errorf("got sockets %v, %v, want two", infos, err)
	}
	if mode == "classic" {
		theirs.do("allRooms")
		var rooms []string
		theirs.answer("rooms", &rooms)
		if len(rooms) != 3 {
			t.Errorf("got rooms %v, want the shared one and two IDs", rooms)
		}
	}
	theirs.do("join", "room", "more")
	testenv.Eventually(t, "join by a peer", func() bool { return ours.RoomSize("more") == 1 })
	theirs.do("leave", "more", "more")
	testenv.Eventually(t, "leave by a peer", func() bool { return ours.RoomSize("more") == 0 })

	theirs.do("serverSideAck", "question", "?") // without a handler here: an answer, no time-out
	var answers []json.RawMessage
	theirs.answer("answers", &answers)
	ours.OnServerSideEmit(func(event string, args socketio.Args, ack func(any)) { ack(event + args.String(0)) })
	theirs.do("serverSideAck", "question", "?")
	theirs.answer("answers", &answers)
	if len(answers) != 1 || string(answers[0]) != `"question?"` {
		t.Errorf("got %s, want our answer", answers)
	}
	if err := ours.ServerSideEmit(t.Context(), "to-servers", "hello"); err != nil {
		t.Fatal(err)
	}
	var said string
	theirs.answer("server-side", &said)

	go func() { // the only message that carries an id
		alice.Want(`42/message,0["ask","x"]`)
		alice.Write(`43/message,0["yes"]`)
	}()
	theirs.do("emitAck", alice.ID, "ask", "x")
	var acks []string
	theirs.answer("acks", &acks)
	if len(acks) != 1 || acks[0] != "yes" {
		t.Errorf("got %v, want the client's answer", acks)
	}
}
