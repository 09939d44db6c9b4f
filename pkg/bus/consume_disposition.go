package bus

import (
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// disposition is what becomes of a delivery after a try.
type disposition int

const (
	acknowledge disposition = iota // handled, or there was nothing to do
	retryLater                     // try again in place; what follows of the same key waits
	giveUp                         // give up: to DEAD
)

// policy says how often and for how long a delivery is tried again. The zero policy gives up at once.
type policy struct {
	done   bool          // there is nothing to try again
	tries  int           // at most so many, the first included; 0: any number
	within time.Duration // and not for longer than this
	first  time.Duration // the pause before the second try; it doubles
	most   time.Duration // up to this
}

// maxPause is the longest pause between two tries, where a consumer names none.
const maxPause = 5 * time.Second

// policyOf is the one table from an error's code to what a consumer does about it.
func policyOf(code apperr.Code) policy {
	switch code {
	case apperr.Conflict: // somebody has done it already
		return policy{done: true}
	case apperr.Invalid, apperr.Unauthenticated: // it will never be right
		return policy{}
	case apperr.NotFound: // perhaps not yet: what it needs may be on its way through another consumer
		return policy{within: 10 * time.Second, first: 100 * time.Millisecond, most: 2 * time.Second}
	case apperr.TooMany, apperr.Unavailable: // an outage is not the delivery's fault
		return policy{within: 24 * time.Hour, first: 100 * time.Millisecond, most: maxPause}
	case apperr.Internal: // a fault of ours, and maybe a passing one
	}
	return policy{tries: 5, within: time.Hour, first: 100 * time.Millisecond, most: maxPause}
}

// decide says what becomes of a delivery whose last of so many tries ended with err, elapsed after the first try began, and
// how long to wait where it is tried again: at most longest, unless a limiter has named a time.
func decide(err error, tries int, elapsed, longest time.Duration) (disposition, time.Duration) {
	if err == nil {
		return acknowledge, 0
	}
	p := policyOf(apperr.CodeOf(err))
	e, coded := errors.AsType[*apperr.Error](err)
	switch {
	case p.done:
		return acknowledge, 0
	case coded && e.Final, p.within == 0, p.tries > 0 && tries >= p.tries, elapsed >= p.within:
		return giveUp, 0
	}
	wait := min(backoff(p, tries), longest)
	if coded && (e.Code == apperr.TooMany || e.Ready != nil) {
		wait = max(wait, e.RetryAfter) // a limiter has named the time, or Ready ends the wait
	}
	return retryLater, min(wait, p.within-elapsed)
}

func backoff(p policy, tries int) time.Duration {
	const maxDoublings = 16 // far beyond any most, far below an overflow
	return min(p.first<<min(tries-1, maxDoublings), p.most)
}

// neverGiveUp is for what has no other way out: a dead letter that DEAD does not take yet.
func neverGiveUp() policy { return policy{first: 100 * time.Millisecond, most: maxPause} }
