// Package idempotency makes requests with an Idempotency-Key safe to retry: a repeated request is not executed again
// (draft-ietf-httpapi-idempotency-key-header).
//
// Reading order: key.go (format of a key), fingerprint.go (when two requests are the same), executor.go (which request
// executes, and the response to the others), record.go (the stored record), answer.go (which answers are stored).
//
// Invariants:
//
//   - A key is claimed first, by inserting a document: of concurrent requests on all replicas one executes. The others get
//     409 (in progress) or its answer.
//   - The claim fixes the message's id and time. A later attempt, after the first crashed or could not publish, publishes
//     the same message, which JetStream and all consumers deduplicate by id; if the message is already in the history, it
//     publishes nothing.
//   - A claim is protected by a lease. Only the holder of the lease replaces or removes the claim; the first stored answer
//     counts.
//   - A request that has claimed its key runs to completion even if the caller disconnects.
//   - Answers of completed requests are stored, successes and refusals alike. Earlier failures (no valid credential or
//     body, a limit, an outage, an internal error) are not: a retry executes again.
package idempotency
