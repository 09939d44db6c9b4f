// Package redisadapter connects the nodes of a Socket.IO cluster over Redis pub/sub, in the wire format of
// the official adapter for Node (@socket.io/redis-adapter): nodes of both kinds share rooms, and the
// official emitters of other languages reach the sockets of ours.
//
//	adapter := redisadapter.New(client, redisadapter.Options{})
//	srv := socketio.NewServer(socketio.Options{Adapter: adapter})
//
// Unlike the original, a node subscribes only to the rooms that it hosts, so that an event for one room
// costs the same however many nodes there are.
//
// Reading order: adapter.go (what the namespace calls), publisher.go (batched PUBLISH), subscriber.go (counted
// subscriptions on one connection that comes back), conn.go (that connection), cluster.go (one such connection per
// shard), classic.go, broadcast.go and sharded.go (the two wire formats), request.go (questions between nodes),
// tojson.go and tomsgpack.go (JSON and MessagePack).
//
// Invariants:
//   - Subscribe returns after Redis has confirmed: what is published from then on arrives.
//   - Subscriptions are counted, so leaving and joining a room may overlap in any order.
//   - Messages are delivered in the order in which Redis sends them, from one goroutine.
//   - After a lost connection every subscription is back, and confirmed, before OnReconnect is called.
//   - An event's JSON arrives at our nodes byte for byte as it was emitted, although MessagePack carries it.
package redisadapter
