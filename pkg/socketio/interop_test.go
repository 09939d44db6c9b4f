package socketio_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/internal/testenv"
)

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
			testenv.RunNode(t, "client.js", conversationServer(t), mode)
		})
	}
}

func TestOfficialLegacyClient(t *testing.T) {
	t.Parallel()
	out := testenv.RunNode(t, "legacy.js", conversationServer(t))
	if !strings.Contains(out, "400") {
		t.Errorf("got %q, want a refusal with status 400", out)
	}
}
