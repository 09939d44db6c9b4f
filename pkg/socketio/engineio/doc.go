// Package engineio is a server for revision 4 of the Engine.IO protocol: a message channel between a
// browser and a server that starts as HTTP long-polling or as a WebSocket, may move from the first to
// the second, and is kept alive by the server's heartbeat.
//
// Reading order: packet.go and payload.go (bytes and values, pure functions), message.go (a message
// encoded once and shared by all sessions), frame.go, deflate.go, handshake.go and websocket.go (one
// socket), polling.go (one HTTP exchange), session.go (sid, queue, heartbeat, one way to close), upgrade.go, wheel.go
// (all timers of a server), poller_linux.go (idle sockets without goroutines), server.go (requests to
// sessions), open.go (new sessions and connections), refusal.go (the table of errors).
//
// The layer above has a small interface: [OpenFunc] reports a new session, [Handler] receives its packets,
// [Session.Send] answers, and [Session.Close] ends it.
//
// Invariants:
//   - A session is closed once; [Handler.OnClose] is called once, after it no message is delivered.
//   - No handler and no system call runs under a lock of this package.
//   - A session holds at most Options.SendBuffer bytes for its client. A client that reads too slowly is
//     closed; the sender is never held up.
//   - An idle WebSocket holds no buffer, and on Linux no goroutine: both are taken when bytes have arrived.
//   - Nothing is allocated for a length that was only announced.
package engineio
