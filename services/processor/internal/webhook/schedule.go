package webhook

import (
	"math/rand/v2"
	"time"
)

// pauses are the intervals between the attempts of a delivery: ten attempts over 75 hours.
var pauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// MaxTries is the number of attempts of a delivery.
const MaxTries = 10

const (
	// jitter is the fraction by which a pause varies, in both directions.
	jitter = 0.1
	// maxRetryAfter bounds an endpoint's Retry-After.
	maxRetryAfter = 24 * time.Hour
)

// pauseAfter returns the pause after n failed attempts; more is false after the last.
func pauseAfter(tries int) (pause time.Duration, more bool) {
	if tries < 1 || tries > len(pauses) {
		return 0, false
	}
	p := float64(pauses[tries-1])
	return time.Duration(p * (1 - jitter + 2*jitter*rand.Float64())), true
}
