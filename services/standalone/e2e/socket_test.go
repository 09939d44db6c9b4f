package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/needs"
)

// sockets is one Node process with all sockets of the tests.
type sockets struct {
	stdin io.WriteCloser
	write sync.Mutex
	next  atomic.Int64

	mu   sync.Mutex
	byID map[string]*socket
}

// socket is one official client.
type socket struct {
	id     string
	of     *sockets
	events chan clientEvent
}

// clientEvent is an event that a client reports.
type clientEvent struct {
	ID        string            `json:"id"`
	Kind      string            `json:"kind"` // connect, upgrade, connect_error, disconnect, event, ack, closed
	Transport string            `json:"transport"`
	Recovered bool              `json:"recovered"` // of connect: the client gets what it missed
	Message   string            `json:"message"`
	Data      json.RawMessage   `json:"data"`
	Active    bool              `json:"active"` // the client keeps trying
	Event     string            `json:"event"`
	Args      []json.RawMessage `json:"args"`
}

var startSockets = sync.OnceValues(func() (*sockets, error) {
	cmd := exec.Command("node", "sockets.mjs")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr := new(tail)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &sockets{stdin: stdin, byID: map[string]*socket{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.read(stdout)
		if err := cmd.Wait(); err != nil {
			panic(fmt.Sprintf("sockets.mjs: %v\n%s", err, stderr))
		}
	}()
	closeLater(func() { stdin.Close(); <-done })
	return s, nil
})

func (s *sockets) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e clientEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			panic(fmt.Sprintf("sockets.mjs printed %q: %v", lines.Text(), err))
		}
		s.mu.Lock()
		to := s.byID[e.ID]
		s.mu.Unlock()
		if to != nil {
			to.events <- e
		}
	}
}

func (s *sockets) command(t testing.TB, c map[string]any) {
	t.Helper()
	line, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	s.write.Lock()
	defer s.write.Unlock()
	if _, err := s.stdin.Write(append(line, '\n')); err != nil {
		t.Fatalf("commanding sockets.mjs: %v", err)
	}
}

// openSocket starts a client; nil: without a token. It closes with the test.
func openSocket(t testing.TB, url string, token any, transports ...string) *socket {
	t.Helper()
	open := map[string]any{"url": url, "transports": transports}
	if token != nil {
		open["token"] = token
	}
	return startSocket(t, open)
}

// openLegacySocket starts a client of Socket.IO 2, which has no recovery.
func openLegacySocket(t testing.TB, url string, token any, transports ...string) *socket {
	t.Helper()
	return startSocket(t, map[string]any{"url": url, "transports": transports, "token": token, "legacy": true})
}

// startSocket starts a client with the members of the command to open one.
func startSocket(t testing.TB, open map[string]any) *socket {
	t.Helper()
	needs.Program(t, "node")
	all, err := startSockets()
	if err != nil {
		t.Fatalf("starting sockets.mjs: %v", err)
	}
	s := &socket{id: fmt.Sprint(all.next.Add(1)), of: all, events: make(chan clientEvent, 4096)}
	all.mu.Lock()
	all.byID[s.id] = s
	all.mu.Unlock()
	open["op"], open["id"] = "open", s.id
	all.command(t, open)
	t.Cleanup(func() { all.command(t, map[string]any{"op": "close", "id": s.id}) })
	return s
}

// connected starts a client and returns when it has joined its room and, with two transports, upgraded.
func connected(t testing.TB, url, token string, transports ...string) *socket {
	t.Helper()
	s := openSocket(t, url, token, transports...)
	missing := map[string]bool{"connect": true, "upgrade": len(transports) > 1}
	for missing["connect"] || missing["upgrade"] {
		missing[s.await(t, "connect", "upgrade").Kind] = false
	}
	return s
}

func (s *socket) emit(t testing.TB, event string, args ...any) {
	t.Helper()
	s.of.command(t, map[string]any{"op": "emit", "id": s.id, "event": event, "args": args})
}

// ask emits an event and returns its acknowledgement.
func (s *socket) ask(t testing.TB, event string, args ...any) string {
	t.Helper()
	s.of.command(t, map[string]any{"op": "emit", "id": s.id, "event": event, "args": args, "ack": true})
	return string(s.await(t, "ack").Data)
}

// await skips events until one of the kinds.
func (s *socket) await(t testing.TB, kinds ...string) clientEvent {
	t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case e := <-s.events:
			if slices.Contains(kinds, e.Kind) {
				return e
			}
		case <-timeout:
			t.Fatalf("socket: no %s in time", strings.Join(kinds, " or "))
		}
	}
}

// delivery is the payload of the event message.
type delivery struct {
	record
	ChatID string `json:"chatId"`
}

// next returns the next event, which must be a message.
func (s *socket) next(t testing.TB) delivery {
	t.Helper()
	e := s.await(t, "event")
	if e.Event != "message" || len(e.Args) == 0 {
		t.Fatalf("socket: got event %q with %d arguments, want message", e.Event, len(e.Args))
	}
	var d delivery
	if err := json.Unmarshal(e.Args[0], &d); err != nil {
		t.Fatalf("decoding %s: %v", e.Args[0], err)
	}
	return d
}
