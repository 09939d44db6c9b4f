// Package socketio is a server for revision 5 of the Socket.IO protocol, used by the official clients of
// versions 3 and 4: namespaces, rooms, and events in both directions with acknowledgements and binary data. It builds
// on package engineio.
//
// A Server is an http.Handler; a process may have several:
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
//   - No application code and no network call runs under a lock.
//   - The handlers of one socket run one at a time: connection handlers, then events in the order sent,
//     then disconnect handlers. A blocking handler delays only its own socket.
//   - A socket is closed once, always by Socket.close.
//   - A broadcast is encoded once for all recipients, including the WebSocket framing.
//   - A client that reads too slowly is closed when Options.SendBuffer bytes are queued for it; it never delays others.
//   - The CONNECT answer is sent before any other packet of the socket; broadcasts received meanwhile follow it.
package socketio
