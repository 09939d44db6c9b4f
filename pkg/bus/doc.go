// Package bus publishes, consumes and reads events over NATS JetStream. Publish returns after the stream has
// acknowledged the event; Consume handles deliveries in order per key, across all replicas.
//
// Start with bus.go (the connection and its lifetime), streams.go and partitions.go; then by file prefix:
//
//   - publish: publish.go, publish_ack.go (acknowledgements), publish_batch.go (concurrent publishes share a
//     write), publish_guard.go (streams that stopped acknowledging).
//   - consume: consume.go (configuration), consume_group.go (one replica of a group), consume_members.go and
//     consume_assign.go (membership and partition assignment), consume_reader.go with consume_pull.go,
//     consume_reorder.go and consume_ledger.go (one partition), consume_offsets.go with consume_puller.go,
//     consume_offset_reader.go and offset.go (all partitions of a replica, without acknowledgements),
//     consume_queue.go and consume_handle.go (different keys concurrently), consume_disposition.go (retry
//     policy), consume_deadletter.go, consume_progress.go (what operators ask).
//   - read: read.go (ranges), read_tail.go, read_last.go, read_group.go, read_accepted.go, read_deadletter.go.
//
// What services ask and announce beside the streams is in pkg/rpc, over the connection of a Bus ([Bus.RPC]).
//
// Invariants:
//
//   - A Bus never creates or changes a stream. streams.go declares the streams, and [Bus.ApplyStreams]
//     (apply.go) makes the server match.
//   - If Publish returns nil, the event is in its stream. If Publish fails, the event may be stored
//     nevertheless. Publishing the same event again is idempotent because the event id is its Nats-Msg-Id.
//   - Nothing is buffered while NATS is disconnected: Publish fails at once.
//   - Deliveries of one key are handled one at a time in stream order, also after a crash and while
//     partitions move between replicas. A delivery that waits for a retry blocks its own key only.
//   - A delivery leaves the consumer in one of two ways: it is acknowledged, or it is terminated after DEAD
//     has stored it.
//   - Each replica of a consumer computes the same assignment of partitions, and the server pins one reader
//     per partition. Pinning needs nats-server 2.11 or later. A consumer with Offsets uses neither pins nor
//     acknowledgements: after a crash, or while a partition moves, it may handle deliveries again, in order.
//   - Subjects in this API are published subjects. Streams store events under the partition and the subject;
//     only this package and other readers of the stream see the stored form.
//   - Consume returns only when no handler runs and every handled delivery has been acknowledged or terminated.
package bus
