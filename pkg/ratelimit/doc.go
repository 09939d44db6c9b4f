// Package ratelimit limits rates by caller, over all replicas together.
//
// The rule is GCRA: a full rate at once, and one more permit each time a permit's share of the period has passed. Redis keeps the
// time by which a caller's permits are all back (one key a caller, gcra.lua); replicas take permits from there in leases and spend
// them by themselves, so that a busy caller costs a round trip now and then instead of one a request.
//
// Reading order: gcra.go (the rule), limiter.go (leases), redis.go (shared state), http.go (headers and errors).
//
// How exact it is: never more than the rate is given out while Redis answers. A lease is one permit for a caller who comes seldom,
// and grows with the pace up to a twentieth of the rate, so what a replica holds unspent is at most that. A caller who has been
// refused is refused without asking Redis until permits are back. While Redis is away, or without it, each replica counts by
// itself: n replicas let n times the rate pass, and no additional request is refused.
package ratelimit
