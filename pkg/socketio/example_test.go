package socketio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/coder/websocket"

	"github.com/parley-chat/parley/pkg/socketio"
)

func Example() {
	srv := socketio.NewServer(socketio.Options{})
	defer srv.Close()
	chat := srv.Of("/chat")
	chat.Use(func(ctx context.Context, s *socketio.Socket) error {
		var auth struct{ Token string }
		if err := json.Unmarshal(s.Handshake().Auth, &auth); err != nil || auth.Token != "secret" {
			return &socketio.ConnectError{Message: "Unauthorized"}
		}
		return s.JoinContext(ctx, "lobby")
	})
	chat.OnConnection(func(s *socketio.Socket) {
		s.On("say", func(args socketio.Args, ack socketio.Ack) {
			_ = chat.To("lobby").Emit("said", args.Values()...)
			_ = ack("ok")
		})
	})
	http := httptest.NewServer(srv)
	defer http.Close()

	// What a client sends and sees on the wire:
	ctx := context.Background()
	conn, _, err := websocket.Dial(ctx, http.URL+"/socket.io/?EIO=4&transport=websocket", nil)
	if err != nil {
		panic(err)
	}
	defer conn.CloseNow()
	conn.Read(ctx) // the open packet
	conn.Write(ctx, websocket.MessageText, []byte(`40/chat,{"token":"secret"}`))
	conn.Read(ctx) // the CONNECT answer
	conn.Write(ctx, websocket.MessageText, []byte(`42/chat,1["say","hello"]`))
	for range 2 {
		_, text, _ := conn.Read(ctx)
		fmt.Println(string(text))
	}
	// Output:
	// 42/chat,["said","hello"]
	// 43/chat,1["ok"]
}

func ExampleArgs_Decode() {
	srv := socketio.NewServer(socketio.Options{})
	defer srv.Close()
	srv.Of("/").OnConnection(func(s *socketio.Socket) {
		s.On("upload", func(args socketio.Args, ack socketio.Ack) {
			var file struct {
				Name string
				Data []byte // a binary attachment
			}
			if err := args.Decode(0, &file); err != nil {
				_ = ack("bad request")
				return
			}
			_ = ack("ok", len(file.Data))
		})
	})
}

func ExampleTarget_EmitContext() {
	srv := socketio.NewServer(socketio.Options{})
	defer srv.Close()
	record := json.RawMessage(`{"id":"1","amount":1.50}`) // goes to the wire byte for byte
	err := srv.Of("/orders").To("customer-7").EmitContext(context.Background(), "changed", record)
	fmt.Println(err)
	// Output: <nil>
}
