// Package legacy serves clients of Socket.IO 1 and 2 (Engine.IO 3) with googollee/go-socket.io, in a process of its own: what
// that library does wrong must not harm the sockets of the gateway (docs/decisions/0005).
//
// In the gateway: process.go (the child process, started again when it dies), forward.go (a request of an old client: its
// token is verified here, then the child gets it), messages.go (what the two processes exchange).
// In the child: child.go (its life), server.go (who may join, with the library's means), transport.go (mends around the
// library's transports), hub.go (rooms, as another node of the cluster over Redis), socket.go (one client).
//
// Invariants:
//   - The child verifies no tokens: it learns the visitor from the gateway, in a header that no client can set.
//   - The child is reached over a socket in a folder that only this user can enter.
//   - The child ends with the gateway, however that ends: its standard input is its lifeline.
//   - A client that reads too slowly is closed; it never delays others.
package legacy
