// Package ratelimit limits request rates per caller, across all replicas.
//
// The algorithm is GCRA: a burst of the full rate, then one more permit each time a permit's share of the
// period has passed. Redis stores per caller the time at which all permits are available again (gcra.lua).
// Replicas lease permits from it and spend them locally, so that a busy caller costs an occasional round trip
// instead of one per request.
//
// Reading order: gcra.go (the algorithm), limiter.go (leases), redis.go (shared state), http.go (headers and errors).
//
// Accuracy: while Redis is available, the rate is never exceeded. A lease is one permit for an infrequent
// caller and grows with the caller's pace up to a twentieth of the rate, which bounds the unspent permits of
// a replica. A refused caller is refused locally until permits are available. While Redis is unavailable or
// not configured, each replica counts by itself: n replicas allow n times the rate, and no additional request
// is refused.
package ratelimit
