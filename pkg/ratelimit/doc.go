// Package ratelimit limits rates by caller, across all replicas.
//
// The algorithm is GCRA: the full rate at once, and then one more permit after each permit's share of the period. Redis
// stores the time at which all of a caller's permits are back (one key per caller, gcra.lua); replicas take permits
// from it in leases and spend them locally, so that a busy caller costs an occasional round trip instead of one per
// request.
//
// Reading order: gcra.go (the algorithm), limiter.go (leases), redis.go (shared state), http.go (headers and errors).
//
// Accuracy: while Redis is available, never more than the rate is granted. A lease is one permit for an infrequent
// caller, and grows with the caller's pace up to a twentieth of the rate, which bounds what a replica holds unspent. A
// refused caller is refused without asking Redis until permits are back. While Redis is unavailable or not configured,
// each replica counts by itself: n replicas allow n times the rate, and no additional request is refused.
package ratelimit
