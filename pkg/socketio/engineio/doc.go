// Package engineio is a server for revision 4 of the Engine.IO protocol: a message channel between
// browser and server that starts as HTTP long-polling or as a WebSocket, may be upgraded from polling to
// WebSocket, and is kept alive by the server's heartbeat.
//
// Reading order: packet.go and payload.go (bytes and values, pure functions), message.go (a message encoded once
// and shared by all sessions), frame.go, deflate.go, handshake.go and websocket.go (WebSocket transport),
// polling.go (polling transport), session.go (sid, state, close) with session_write.go (queue and writes) and
// session_timer.go (heartbeat and timeouts), upgrade.go, wheel.go (all timers of a server), poller_linux.go
// (idle sockets without goroutines), server.go (routes requests to sessions), open.go (new sessions and
// connections), refusal.go (the table of errors).
//
// The layer above has a small interface: [OpenFunc] reports a new session, [Handler] receives its packets,
// [Session.Send] sends to the client, and [Session.Close] closes the session.
//
// Invariants:
//   - A session is closed once; [Handler.OnClose] is called once, and no message is delivered after it.
//   - No handler and no system call runs under a lock of this package.
//   - A session queues at most Options.SendBuffer bytes for its client. A client that reads too slowly is
//     closed; Send never blocks.
//   - An idle WebSocket has no buffer, and on Linux no goroutine: both are allocated when bytes have arrived.
//   - No memory is allocated for a length before its bytes have arrived.
package engineio
