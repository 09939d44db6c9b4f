// Package idempotency makes requests with an Idempotency-Key safe to retry: a repeated request is not executed again
// (draft-ietf-httpapi-idempotency-key-header).
//
// Reading order: key.go (format of a key), fingerprint.go (equality of requests), executor.go (claims and
// replays), sentbefore.go (what an act asks first), record.go (the stored record), answer.go (the stored
// outcomes).
//
// Invariants:
//
//   - A request claims its key by inserting a record. Of concurrent requests on all replicas one executes;
//     the others receive 409 (in progress) or the stored answer.
//   - The claim fixes the message's id and time. A later attempt, after the first crashed or failed to
//     publish, publishes the same message, which JetStream and all consumers deduplicate by id; if the
//     message is already in the history, it publishes nothing.
//   - A lease protects a claim. Only the holder of the lease replaces or removes the claim; the first stored
//     answer wins.
//   - A request that has claimed its key runs to completion even if the caller disconnects.
//   - Outcomes of completed requests are stored, successes and definite errors alike. Other failures (invalid
//     credential or body, a limit, an outage, an internal error) are not: a retry executes again.
package idempotency
