// Package socketgateway delivers replies to visitors' browsers: it consumes the stream REPLIES and emits each
// reply as the event "message" into its visitor's room, over Socket.IO (clients v3 and v4) at /socket.io/,
// namespace /message.
//
// All gateways form one consumer group ([bus.Consumer.Offsets]): each reads a share of the partitions of the stream,
// and saves the offset up to which it has published. After a crash, or while a partition moves, replies may be
// published again; rooms drop those. Redis pub/sub connects the gateways, so that a reply reaches the visitor's
// sockets on every one. If the sender of a message asks for a receipt, the gateway publishes its delivery on STATUS;
// it publishes no other durable events.
//
// service.go and ingress.go are the wiring; internal/realtime authenticates sockets and delivers replies; its
// doc.go names the hops of a reply. A request passes internal/peer (routes it to the gateway that holds its
// session), internal/admission (limits) and internal/legacy (Socket.IO 1 and 2 clients, in a separate process)
// before it reaches the engine.
package socketgateway
