package bus

import (
	"cmp"
	"slices"
	"time"
)

// reorderBuffer keeps the order where deliveries may be missing. The server numbers what it sends to a consumer, so a gap in the
// numbers shows that something was sent that did not arrive here: to a process that has crashed, to another replica, or into
// a connection that broke. The server will send it again, but after what is new. So at a gap the buffer closes: deliveries are
// kept until the server has no others out than those that are here, and then let through in stream order.
type reorderBuffer struct {
	limit    time.Duration // the longest that it stays closed: after that the server must have sent everything again
	expected uint64
	gaps     int       // how many there were; an answer of the server from before the last one says nothing
	closedAt time.Time // zero: open
	kept     []*task
}

func newReorderBuffer(limit time.Duration) *reorderBuffer {
	return &reorderBuffer{limit: limit, expected: 1} // a new consumer's first delivery is number one, and closes nothing
}

// arrive notes the number of a delivery, and reports whether the buffer has just closed.
func (r *reorderBuffer) arrive(number uint64, now time.Time) bool {
	gap := number != r.expected
	r.expected = number + 1
	if !gap {
		return false
	}
	r.gaps++
	if !r.open() {
		return false
	}
	r.closedAt = now
	return true
}

func (r *reorderBuffer) open() bool { return r.closedAt.IsZero() }

// extend begins the time limit anew: what is missing is in the hands of a replica that lives.
func (r *reorderBuffer) extend(now time.Time) {
	if !r.open() {
		r.closedAt = now
	}
}

func (r *reorderBuffer) keep(t *task) { r.kept = append(r.kept, t) }

// try opens the buffer if nothing is missing, or if it has been closed for too long. It returns what was kept, in stream order.
func (r *reorderBuffer) try(complete bool, now time.Time) []*task {
	if r.open() || (!complete && now.Sub(r.closedAt) < r.limit) {
		return nil
	}
	return r.release()
}

// release opens the buffer and returns what was kept, in stream order.
func (r *reorderBuffer) release() []*task {
	kept := r.kept
	r.kept, r.closedAt = nil, time.Time{}
	sortTasks(kept)
	return kept
}

func sortTasks(tasks []*task) {
	slices.SortFunc(tasks, func(a, b *task) int { return cmp.Compare(a.delivery.Sequence, b.delivery.Sequence) })
}
