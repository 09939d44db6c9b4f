// Package bus carries events over NATS JetStream: one publish that returns after the stream has taken the event, one consumer
// loop that keeps the order within a key, and a word to all replicas that something cached is stale.
//
// Read bus.go first (the connection and its lifetime), then publish.go and consume.go; fate.go is the one table that says what
// becomes of a delivery whose handler failed. Invariants:
//
//   - No bus creates or changes a stream. The declaration is streams.go, and [Apply] (apply.go) makes the server match it.
//   - An event whose Publish returned nil is in its stream. One whose Publish failed may be there too: publishing the same
//     event again is harmless, because its id is its Nats-Msg-Id.
//   - Nothing is buffered while NATS is away: Publish fails at once.
//   - The deliveries of one key are handled one after the other in stream order, also after a crash and with several
//     replicas. A delivery that must be tried again holds up its own key and no other.
//   - A delivery leaves the consumer in one of two ways: acknowledged, or, after its content has safely arrived in DEAD,
//     terminated.
//   - Of the replicas of one consumer the server pins one, and the others stand by; that is what order costs. It needs
//     nats-server 2.11 or later.
//   - Consume returns only when no handler runs any more and the server has been told of every delivery that was handled.
package bus
