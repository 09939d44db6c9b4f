package main

import (
	"context"
	"log"
	"net/http"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/redisadapter"
	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	srv := socketio.NewServer(socketio.Options{
		Adapter: redisadapter.New(client, redisadapter.Options{}), // leave it out with one process
	})
	defer srv.Close()
	chat := srv.Of("/chat")
	chat.Use(func(ctx context.Context, s *socketio.Socket) error {
		return s.JoinContext(ctx, "lobby") // or a ConnectError that the client sees
	})
	chat.OnConnection(func(s *socketio.Socket) {
		s.On("say", func(args socketio.Args, ack socketio.Ack) {
			_ = chat.To("lobby").Emit("said", args.Values()...)
			_ = ack("ok")
		})
	})
	http.Handle("/socket.io/", srv)
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}
