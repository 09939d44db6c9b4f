// Package realtime connects visitors' sockets to the stream of replies.
//
// The way of a reply, one verb a hop; what calls stands above what is called:
//
//	Read             publish.go    reads batches from the stream REPLIES
//	publish          publish.go    encodes each reply (encode.go) and publishes it to all gateways over Redis
//	EmitAll          pkg/socketio  hands the batch to the adapter, or to this gateway if there is none
//	handleBroadcast  room.go       takes what Redis delivers to this gateway
//	emit             room.go       drops duplicates, in the order of the stream
//	enqueue          pkg/socketio  queues the encoded event for each socket of the room
//	Send             engineio      writes to the client of a session at once, or queues
//
// The way of a socket: connect.go (authentication and rooms), origin.go (allowed pages), token.go and expiry.go
// (token renewal and expiry), revocation.go, recover.go and recover_bounds.go (replay to a client that
// reconnects), presence.go (connected visitors), drain.go (the end).
//
// Beside them: live.go (typing and read cursors), part.go and unfinished.go (messages that are still being
// written), receipt.go (delivery reports), reply_stream.go (reads the stream), low_watermarks.go, pause.go and
// outage.go (replay to this gateway after a loss of Redis). gateway.go makes and runs all of them.
//
// The engine (pkg/socketio) has sockets and rooms, the bus has streams; only this package has visitors and replies.
//
// Invariants (the reasons are in docs/decisions/0004-delivery.md):
//
//   - The saved offset of a partition passes a reply only after Redis has accepted it, and the next reply of
//     the same room follows only then.
//   - A room delivers increasing offsets only; other events were delivered before, or were published before
//     the room had a socket.
//   - A client that reconnects with pid and offset receives the replies after them from the stream, and later
//     replies live.
package realtime
