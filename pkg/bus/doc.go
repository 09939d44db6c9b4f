// Package bus publishes, consumes and reads events over NATS JetStream. Publish returns after the stream has
// acknowledged the event; Consume handles deliveries in order per key, across all replicas.
//
// Start with bus.go (the connection and its lifetime), streams.go and partitions.go; then by file prefix:
//
//   - publish: publish.go, publish_ack.go (acknowledgements), publish_batch.go (concurrent publishes share a
//     write), publish_guard.go (streams that stopped acknowledging).
//   - consume: consume.go (configuration), and the way of a delivery below.
//   - read: read.go (ranges), read_direct.go (without a consumer), read_tail.go, read_last.go, read_group.go,
//     read_state.go, read_accepted.go, read_deadletter.go.
//   - lost: lost_tail.go (messages that a stream had acknowledged and has lost), lost_mark.go (how they are noticed).
//   - fill.go: how full the streams are, for the budgets and for dead letters.
//   - verify.go: which stored messages cannot be read any more, for operators.
//
// The way of a delivery, one verb a hop, from the call of [Bus.Consume] to the handler:
//
//	Consume              consume.go                validates the Consumer; runs a group until its context is done
//	group.run            consume_group.go          finds the number of partitions, and starts over if it changes
//	rebalance            consume_group.go          assigns partitions as replicas join and leave: consume_members.go,
//	                                               consume_assign.go (Unordered consumers have no assignment)
//	start                consume_group.go          starts the reader of an assigned partition in its own goroutine
//
// A partition with acknowledgements:
//
//	partitionReader.run  consume_reader.go         repeats sessions while the partition is assigned
//	                                               (consume_session.go)
//	session              consume_reader.go         creates the durable consumer, pulls batches (consume_pull.go)
//	receive              consume_reader.go         makes a task of a delivery; drops redeliveries
//	                                               (consume_ledger.go); restores the order after a gap
//	                                               (consume_reorder.go)
//
// All partitions of a replica without acknowledgements (Consumer.Offsets):
//
//	offsetReader.run     consume_offset_reader.go  waits until a partition is free, loads its offset (offset.go)
//	                                               and joins the next session; saves the offset at the end
//	session              consume_offsets.go        creates one ephemeral consumer for the partitions, pulls
//	                                               batches (consume_puller.go)
//	receive              consume_offsets.go        makes a task of a delivery; skips those handled before
//
// Both:
//
//	add                  consume_queue.go          appends the task to the queue of its key
//	work                 consume_queue.go          takes ready tasks: one of a key at a time, tenants in turns
//	                                               (consume_shares.go)
//	handleAll            consume_handle.go         sends what the group has given up on to DEAD
//	                                               (consume_deadletter.go), tries the rest
//	try                  consume_handle.go         counts the try
//	handle               consume_handle.go         calls Consumer.Handle (handleBatch: Consumer.HandleBatch)
//	classify             consume_handle.go         maps the error to acknowledge, retry or give up
//	                                               (consume_disposition.go)
//	finish               consume_handle.go         removes the task from the ledger, which acknowledges it
//	                                               or, with Offsets, lets the offset advance
//
// consume_progress.go answers what operators ask about a delivery on this way.
//
// What services ask and announce beside the streams is in pkg/rpc, over the connection of a Bus ([Bus.RPC]).
//
// Invariants:
//
//   - A Bus never creates or changes a stream. streams.go declares the streams, and [Bus.ApplyStreams]
//     (apply.go) makes the server match.
//   - If Publish returns nil, the event is in its stream. If Publish fails, the event may be stored
//     nevertheless. Publishing the same event again within two minutes (PARTS: ten seconds) stores it once,
//     because the event id is its Nats-Msg-Id.
//   - Nothing is buffered while NATS is disconnected: Publish fails at once.
//   - Deliveries of one key are handled one at a time in stream order, also after a crash and while
//     partitions move between replicas. A delivery that waits for a retry blocks its own key only.
//   - A delivery leaves the consumer in one of two ways: it is acknowledged, or it is terminated after DEAD
//     has stored it. Only what a used up budget has refused is terminated without DEAD once that is half full.
//   - Each replica of a consumer computes the same assignment of partitions, and the server pins one reader
//     per partition. Pinning needs nats-server 2.11 or later. A consumer with Offsets uses neither pins nor
//     acknowledgements: after a crash, or while a partition moves, it may handle deliveries again, in order.
//   - Subjects in this API are published subjects. Streams store events under the partition and the subject;
//     only this package and other readers of the stream see the stored form. [Bus.After] and [Bus.LastSequence]
//     take the stored form, from [Bus.Stored].
//   - Consume returns only when no handler runs and every handled delivery has been acknowledged or terminated.
package bus
