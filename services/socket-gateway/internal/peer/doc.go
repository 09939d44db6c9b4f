// Package peer lets gateways share one address without sticky sessions: a request may reach any gateway and
// is served by the one that holds its session.
//
// A session id begins with the id of its gateway (id.go). Gateways register their addresses in Redis
// (registry.go). A request for another gateway's session, whether a poll, a POST or a WebSocket upgrade, is
// forwarded to that address (forward.go).
//
// Invariants:
//   - Only registered addresses are dialled; a client can only choose among them.
//   - A request is forwarded at most once. A forwarded request is served locally.
//   - A request for a session of a dead gateway gets "Session ID unknown", so that its client starts a new session.
package peer
