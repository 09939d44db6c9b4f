// Package idempotency lets a request that carries an Idempotency-Key be sent again without being done again
// (draft-ietf-httpapi-idempotency-key-header).
//
// Reading order: key.go (format of a key), fingerprint.go (when two requests are the same), executor.go (which request acts, and what
// the others get), record.go (the stored record), answer.go (which answers are stored).
//
// Invariants:
//
//   - A key is claimed before anything is done, by inserting a document: of concurrent requests on all replicas one acts. The others
//     get 409 (in progress) or its answer.
//   - The claim fixes the message's id and time. A later attempt, after the first crashed or could not publish, publishes the same
//     message, which JetStream and all consumers deduplicate by id; if the message is in the history already, it publishes nothing.
//   - A claim is protected by a lease. Only the holder of the lease rewrites or removes the claim; the first recorded answer counts.
//   - A request that has claimed its key runs to its end even if the caller has gone.
//   - Answers of completed requests are stored, successes and refusals alike. Failures before that (no valid credential or body, a
//     limit, an outage, an internal error) are not: a retry tries again.
package idempotency
