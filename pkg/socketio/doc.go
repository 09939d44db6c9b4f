// Package socketio is a server for revision 5 of the Socket.IO protocol, which the official clients of
// versions 3 and 4 speak: namespaces, rooms, events both ways with acknowledgements and binary data, on
// top of package engineio.
//
// A Server is an http.Handler; several may live in one process:
//
//	srv := socketio.NewServer(socketio.Options{})
//	defer srv.Close()
//	chat := srv.Of("/chat")
//	chat.Use(func(ctx context.Context, s *socketio.Socket) error {
//		// may block: check a token, join rooms
//		return s.JoinContext(ctx, "lobby")
//	})
//	chat.OnConnection(func(s *socketio.Socket) {
//		s.On("say", func(args socketio.Args, ack socketio.Ack) {
//			chat.To("lobby").Emit("said", args.Values()...)
//			ack("ok")
//		})
//	})
//	http.Handle("/socket.io/", srv)
//
// Reading order: packet.go, decoder.go, encode.go, args.go (text and values, pure functions), client.go
// (a session and its sockets), socket.go, connect.go, hold.go, inbox.go, ack.go (one socket),
// namespace.go, broadcast.go, room.go (many sockets), adapter.go (many nodes), server.go.
//
// Invariants:
//   - No code of the application and no network call runs under a lock.
//   - The handlers of one socket run one at a time: connection handlers, then events in the order sent,
//     then disconnect handlers. A blocking handler holds up its own socket only.
//   - A socket is closed once, by Socket.close, whatever the cause.
//   - A broadcast is encoded once, WebSocket framing included, however many sockets get it.
//   - A client that reads too slowly is closed when Options.SendBuffer bytes wait for it; it never delays others.
//   - The client sees its CONNECT answer before anything else, and broadcasts that arrived meanwhile after it.
package socketio
