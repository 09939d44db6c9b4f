// Package peer lets gateways share one address without sticky sessions: whichever of them a request reaches, the one that
// holds its session serves it.
//
// A session's id begins with its gateway's (id.go). Gateways write into Redis under which address the others reach them
// (registry.go). A request that names another gateway's session is passed on to that address (forward.go): a poll, a
// POST or the upgrade to WebSocket.
//
// Invariants:
//   - Only addresses that a gateway has registered are dialled; what a client sends chooses among them at most.
//   - A request is passed on once. One that was passed on already is served where it arrives.
//   - A session of a dead gateway is answered like an unknown one, so that its client starts a new session.
package peer
