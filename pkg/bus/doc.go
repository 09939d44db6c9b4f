// Package bus carries events over NATS JetStream: one publish that returns after the stream has taken the event, one consumer
// loop that keeps the order within a key on all replicas, and reads of stored events.
//
// Read bus.go first (the connection and its lifetime), with streams.go and partitions.go; then by the files' prefixes:
//
//   - publish: publish.go, publish_ack.go (acknowledgements), publish_batch.go (one write for what is ready).
//   - consume: consume.go (what a consumer is), consume_group.go (a replica's share), consume_members.go and consume_assign.go (which
//     replica reads which partition), consume_reader.go with consume_pull.go, consume_reorder.go and consume_ledger.go (one partition),
//     consume_positions.go with consume_rounds.go and position.go (all partitions of a replica, without acknowledgements), consume_queue.go
//     and consume_handle.go (keys beside each other), consume_disposition.go (what follows a failed try), consume_deadletter.go.
//   - read: read.go (spans), read_tail.go, read_last.go, read_group.go, read_accepted.go, read_deadletter.go.
//
// Invariants:
//
//   - No bus creates or changes a stream. The declaration is streams.go, and [Apply] (apply.go) makes the server match it.
//   - An event whose Publish returned nil is in its stream. One whose Publish failed may be there too: publishing the same
//     event again is harmless, because its id is its Nats-Msg-Id.
//   - Nothing is buffered while NATS is not connected: Publish fails at once.
//   - The deliveries of one key are handled one after the other in stream order, also after a crash and while partitions move between
//     replicas. A delivery that must be tried again holds up its own key and no other.
//   - A delivery leaves the consumer in one of two ways: acknowledged, or, after its content has safely arrived in DEAD,
//     terminated.
//   - The replicas of a consumer compute which of them reads each partition, and the server pins that reader. This needs nats-server 2.11
//     or later. A consumer with Positions has no pin and no acknowledgements: after a crash, or while a partition moves, deliveries may be
//     handled again, in order.
//   - Subjects are those of the publish. Streams store them with their partition, which only this package and other readers of
//     the stream see.
//   - Consume returns only when no handler runs and every handled delivery has been acknowledged or terminated.
package bus
