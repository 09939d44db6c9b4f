// Package idempotency lets a request that carries an Idempotency-Key be sent again without being done again
// (draft-ietf-httpapi-idempotency-key-header).
//
// Reading order: key.go (what a key looks like), fingerprint.go (when two requests are the same), executor.go (who may act, and what
// the others are told), record.go (what is kept), answer.go (which answers are kept).
//
// Invariants:
//
//   - A key is claimed before anything is done, by inserting a document: of any number of requests at once, on any replica, one
//     acts. The others are told that it is in progress (409) or get its answer.
//   - The message's id and time are fixed in the claim. Whoever acts again, because the first died or could not publish, publishes
//     the same message, which JetStream and everything behind it know by its id; and does not where it is in a history already.
//   - A claim is held by a lease. Only who holds the lease rewrites or removes the claim; the first recorded answer counts.
//   - A request that has claimed its key is finished whether or not the caller still waits.
//   - Answers of what was done are kept, successes and refusals alike. What kept it from being done (no valid credential or body,
//     a limit, something away, a fault of ours) is not: the retry tries again.
package idempotency
