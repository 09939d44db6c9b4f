package bus

// What follows a try: acknowledge, retry or give up, by the error. consume_handle.go asks.

import (
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// disposition is the next step for a delivery after a try.
type disposition int

const (
	acknowledge disposition = iota // handled, or nothing to do
	retryLater                     // retry in this process; later deliveries of the key wait
	giveUp                         // publish to DEAD
)

// policy limits the retries of a delivery. The zero policy gives up at once.
type policy struct {
	done      bool          // acknowledge without a retry
	tries     int           // maximum number, including the first; 0: no limit
	within    time.Duration // maximum time since the first try
	firstWait time.Duration // delay before the first retry; doubles with each retry
	maxWait   time.Duration // maximum delay
}

// maxPause is the default maximum delay between two tries.
const maxPause = 5 * time.Second

// policyOf maps an error code to the retry policy of consumers.
func policyOf(code apperr.Code) policy {
	switch code {
	case apperr.Conflict: // already done
		return policy{done: true}
	case apperr.Invalid, apperr.Unauthenticated: // permanent
		return policy{}
	case apperr.NotFound: // possibly not yet: another consumer may be about to create it
		return policy{within: 10 * time.Second, firstWait: 100 * time.Millisecond, maxWait: 2 * time.Second}
	case apperr.TooMany, apperr.Unavailable: // an outage of a dependency
		return policy{within: 24 * time.Hour, firstWait: 100 * time.Millisecond, maxWait: maxPause}
	case apperr.Internal: // a bug, possibly transient
	}
	return policy{tries: 5, within: time.Hour, firstWait: 100 * time.Millisecond, maxWait: maxPause}
}

// Permanent returns err for a handler that must not be called again for the delivery: the consumer gives up,
// whatever the code of err. Only consumers read it.
func Permanent(err error) error { return &permanentError{err} }

// IsPermanent reports whether err was returned by [Permanent].
func IsPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// permanentError marks an error that no retry can fix.
type permanentError struct{ error }

// Unwrap returns the error that is permanent.
func (e *permanentError) Unwrap() error { return e.error }

// decide returns the disposition of a delivery whose latest try returned err, and the delay before a retry.
// tries counts the tries so far, elapsed is the time since the first. longest limits the delay, unless the
// error carries its own (RetryAfter).
func decide(err error, tries int, elapsed, longest time.Duration) (disposition, time.Duration) {
	if err == nil {
		return acknowledge, 0
	}
	p := policyOf(apperr.CodeOf(err))
	switch {
	case p.done:
		return acknowledge, 0
	case IsPermanent(err), p.within == 0, p.tries > 0 && tries >= p.tries, elapsed >= p.within:
		return giveUp, 0
	}
	wait := min(backoff(p, tries), longest)
	if e, ok := errors.AsType[*apperr.Error](err); ok && e.Code == apperr.TooMany {
		wait = max(wait, e.RetryAfter) // set by a rate limiter
	}
	return retryLater, min(wait, p.within-elapsed)
}

func backoff(p policy, tries int) time.Duration {
	const maxDoublings = 16 // reaches every maxWait without overflow
	return min(p.firstWait<<min(tries-1, maxDoublings), p.maxWait)
}

// neverGiveUp is the policy for publishing dead letters, which must not be lost.
func neverGiveUp() policy { return policy{firstWait: 100 * time.Millisecond, maxWait: maxPause} }
