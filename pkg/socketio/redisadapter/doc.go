// Package redisadapter connects the nodes of a Socket.IO cluster over Redis pub/sub, in the wire format of
// the official Node adapter (@socket.io/redis-adapter): Go and Node servers share rooms, and the
// official emitters in other languages can emit to sockets of Go servers.
//
//	adapter := redisadapter.New(client, redisadapter.Options{})
//	srv := socketio.NewServer(socketio.Options{Adapter: adapter})
//
// Unlike the original, a node subscribes only to the rooms that it hosts, so that the cost of an event for one room
// does not depend on the number of nodes.
//
// Reading order: adapter.go (implements socketio.Adapter), publisher.go (batched PUBLISH), subscriber.go (counted
// subscriptions on one connection, with reconnects), conn.go (the connection), cluster.go (one connection per
// shard), classic.go, broadcast.go and sharded.go (the two wire formats), request.go (requests between nodes),
// tojson.go and tomsgpack.go (conversion between JSON and MessagePack).
//
// Invariants:
//   - Subscribe returns after Redis has confirmed the subscription: later messages arrive.
//   - Subscriptions are counted, so leaves and joins of a room may overlap in any order.
//   - Messages of a connection are delivered by one goroutine, in the order in which Redis sends them.
//   - After a lost connection all subscriptions are restored and confirmed before OnReconnect is called.
//   - Go nodes receive an event's JSON byte for byte as emitted, although it is sent as MessagePack.
package redisadapter
