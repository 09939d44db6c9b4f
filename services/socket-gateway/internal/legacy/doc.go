// Package legacy serves clients of Socket.IO 1 and 2 (Engine.IO 3) with googollee/go-socket.io in a child
// process, so that defects of that library do not affect the gateway's sockets
// (docs/decisions/0001-realtime-engine.md).
//
// In the gateway: process.go (runs the child process and restarts it), forward.go (verifies the token of an
// old client's request and forwards it to the child), messages.go (messages between the two processes). In
// the child: child.go (main loop), server.go (admission, with the library's API), transport.go (workarounds
// around the library's transports), hub.go (rooms, as a node of the Redis cluster adapter), socket.go (one
// client).
//
// Invariants:
//   - The child verifies no tokens: the gateway passes the visitor in a header that clients cannot set.
//   - The child listens on a Unix socket in a directory with mode 0700.
//   - The child exits when its standard input closes, so it ends with the gateway even if that crashes.
//   - A client that reads too slowly is closed and never delays others.
package legacy
