package engineio_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/coder/websocket"

	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// echo sends each message back.
type echo struct{ session *engineio.Session }

func (e echo) OnMessage(data []byte, _ bool) error {
	return e.session.Send(engineio.NewMessage(data)) // takes a copy: data is valid during the call only
}

func (echo) OnClose(engineio.Reason) {}

func Example() {
	srv := engineio.NewServer(engineio.Options{}, func(s *engineio.Session) engineio.Handler {
		s.Confirm() // else it is closed after Options.OpenTimeout
		return echo{s}
	})
	defer srv.Close()
	hs := httptest.NewServer(srv)
	defer hs.Close()

	// What a client sends and sees on the wire:
	ctx := context.Background()
	conn, _, err := websocket.Dial(ctx, hs.URL+"/?EIO=4&transport=websocket", nil)
	if err != nil {
		panic(err)
	}
	defer conn.CloseNow()
	conn.Read(ctx) // the open packet
	conn.Write(ctx, websocket.MessageText, []byte("4hello"))
	_, text, _ := conn.Read(ctx)
	fmt.Println(string(text))
	// Output: 4hello
}
