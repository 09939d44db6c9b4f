// Package socketgateway brings replies to visitors' browsers: it consumes the stream REPLIES and emits each reply as the event
// "message" into the room of its visitor, over Socket.IO (clients v3 and v4) at /socket.io/, namespace /message.
//
// All gateways share one durable consumer, so that each reply is taken once, and are joined by Redis, so that it reaches the
// visitor's sockets on whichever gateway they are. Of messages whose sender asks for a receipt it reports on STATUS that they
// were delivered; it publishes nothing else.
//
// service.go and ingress.go are the wiring; internal/realtime authenticates sockets and delivers replies. Before the engine stand
// internal/peer (a request goes to the gateway that holds its session), internal/admission (bounds) and internal/legacy
// (clients of Socket.IO 1 and 2, in a process of their own).
package socketgateway
