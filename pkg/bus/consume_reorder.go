package bus

// The order of deliveries after a gap; consume_reader.go owns the buffer.

import (
	"cmp"
	"slices"
	"time"
)

// reorderBuffer preserves the order when deliveries are missing. The server numbers the messages that it
// sends to a consumer, so a gap in the numbers means that a message was sent elsewhere: to a crashed process,
// to another replica, or into a lost connection. The server redelivers it, but after newer messages. At a gap
// the buffer therefore closes: it holds deliveries until all that the server counts as pending are held here,
// and then releases them in stream order.
type reorderBuffer struct {
	limit    time.Duration // maximum time closed: by then the server must have redelivered everything
	expected uint64
	gaps     int       // number of gaps; a pending count from before the last gap is void
	closedAt time.Time // zero: the buffer is open
	buffered []*task
}

func newReorderBuffer(limit time.Duration) *reorderBuffer {
	return &reorderBuffer{limit: limit, expected: 1} // the first delivery of a new consumer has number 1
}

// observe records the consumer sequence of a delivery and reports whether it closed the buffer.
func (r *reorderBuffer) observe(number uint64, now time.Time) bool {
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

// extend restarts the time limit: a live replica still handles the missing deliveries.
func (r *reorderBuffer) extend(now time.Time) {
	if !r.open() {
		r.closedAt = now
	}
}

func (r *reorderBuffer) add(t *task) { r.buffered = append(r.buffered, t) }

// tryRelease opens the buffer if nothing is missing or the time limit has passed. It returns the buffered
// tasks in stream order.
func (r *reorderBuffer) tryRelease(complete bool, now time.Time) []*task {
	if r.open() || (!complete && now.Sub(r.closedAt) < r.limit) {
		return nil
	}
	return r.release()
}

// release opens the buffer and returns the buffered tasks in stream order.
func (r *reorderBuffer) release() []*task {
	tasks := r.buffered
	r.buffered = nil
	r.closedAt = time.Time{}
	sortTasks(tasks)
	return tasks
}

func sortTasks(tasks []*task) {
	slices.SortFunc(tasks, func(a, b *task) int { return cmp.Compare(a.delivery.Sequence, b.delivery.Sequence) })
}
