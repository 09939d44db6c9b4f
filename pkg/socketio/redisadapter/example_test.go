package redisadapter_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/redisadapter"
)

// Several such processes share their rooms.
func Example() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", MaxRetries: -1}) // a retry could send twice
	defer client.Close()
	srv := socketio.NewServer(socketio.Options{
		Adapter: redisadapter.New(client, redisadapter.Options{
			OnReconnect: func(namespace string, since time.Time) {
				log.Info("events may have been missed", "namespace", namespace, "since", since)
			},
			Logger: log,
		}),
		LocalIDs: true, // rooms are enough for us
	})
	defer srv.Close()
	chat := srv.Of("/chat")
	chat.Use(func(ctx context.Context, s *socketio.Socket) error {
		return s.JoinContext(ctx, "lobby") // what any node emits from now on arrives
	})
	http.Handle("/socket.io/", srv)
	_ = chat.To("lobby").Emit("news", "a node has started") // an error means that no other node got it
}
