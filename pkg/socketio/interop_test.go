package socketio_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/socketio"
)

// absent skips a test if its tool is missing; in CI it fails the test.
func absent(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing", what)
	}
	t.Skipf("%s is missing: install it to run this test", what)
}

// nodeModules returns the directory of the repository's npm packages.
func nodeModules(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		absent(t, "node")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		found := filepath.Join(dir, "node_modules")
		if _, err := os.Stat(filepath.Join(found, "socket.io-client")); err == nil {
			return found
		}
	}
	absent(t, "node_modules (npm ci)")
	return ""
}

// runNode runs a script of testdata and returns its output.
func runNode(t *testing.T, script string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join("testdata", script)}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+nodeModules(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// conversationServer is the server for testdata/client.js.
func conversationServer(t *testing.T) string {
	srv := socketio.NewServer(socketio.Options{PingInterval: 300 * time.Millisecond, PingTimeout: 10 * time.Second})
	nsp := srv.Of("/message")
	srv.Of("/other")
	nsp.Use(func(ctx context.Context, s *socketio.Socket) error {
		if string(s.Handshake().Auth) != `{"token":"good"}` {
			return &socketio.ConnectError{Message: "Unauthorized", Data: map[string]string{"code": "UNAUTHORIZED"}}
		}
		return s.JoinContext(ctx, "room-"+s.ID())
	})
	nsp.OnConnection(func(s *socketio.Socket) {
		room := nsp.To("room-" + s.ID())
		_ = room.Emit("welcome", map[string]string{"to": "room"})
		s.On("echo", func(args socketio.Args, ack socketio.Ack) { _ = ack(args.Values()...) })
		s.On("echo-event", func(args socketio.Args, _ socketio.Ack) { _ = room.Emit("echoed", args.Values()...) })
		s.On("ask-me", func(args socketio.Args, ack socketio.Ack) {
			answer, err := s.EmitWithAck(context.Background(), "question", args.Values()...)
			if err != nil {
				return
			}
			b, _ := answer.Bytes(1)
			_ = ack(map[string]any{"got": answer.JSON(0), "bytes": len(b)})
		})
		s.On("count", func(args socketio.Args, _ socketio.Ack) {
			var n int
			_ = args.Bind(&n)
			for i := range n {
				_ = room.Emit("n", i)
			}
		})
		s.On("drop-me", func(socketio.Args, socketio.Ack) { s.CloseConnection() })
		s.On("disconnect-me", func(socketio.Args, socketio.Ack) { s.Disconnect(false) })
	})
	hs := httptest.NewServer(srv)
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		hs.Close()
	})
	return hs.URL
}

func TestOfficialClient(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"websocket", "polling", "upgrade"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			nodeModules(t)
			runNode(t, "client.js", conversationServer(t), mode)
		})
	}
}

func TestOfficialLegacyClient(t *testing.T) {
	t.Parallel()
	nodeModules(t)
	out := runNode(t, "legacy.js", conversationServer(t))
	if !strings.Contains(out, "400") {
		t.Errorf("got %q, want a refusal with status 400", out)
	}
}
