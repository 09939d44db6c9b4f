package bus

import (
	"cmp"
	"slices"
	"time"
)

// gate keeps the order where deliveries may be missing. The server numbers what it sends to a consumer, so a gap in the
// numbers shows that something was sent that did not arrive here: to a process that has crashed, to another replica, or into
// a connection that broke. The server will send it again, but after what is new. So at a gap the gate closes: deliveries are
// kept until the server has no others out than those that are here, and then let through in stream order.
type gate struct {
	limit    time.Duration // the longest that it stays closed: after that the server must have sent everything again
	expected uint64
	gaps     int       // how many there were; an answer of the server from before the last one says nothing
	closedAt time.Time // zero: open
	kept     []*task
}

func newGate(limit time.Duration) *gate {
	return &gate{limit: limit, expected: 1} // a new consumer's first delivery is number one, and needs no gate
}

// arrive notes the number of a delivery, and reports whether the gate has just closed.
func (g *gate) arrive(number uint64, now time.Time) bool {
	gap := number != g.expected
	g.expected = number + 1
	if !gap {
		return false
	}
	g.gaps++
	if !g.open() {
		return false
	}
	g.closedAt = now
	return true
}

func (g *gate) open() bool { return g.closedAt.IsZero() }

func (g *gate) keep(t *task) { g.kept = append(g.kept, t) }

// try opens the gate if nothing is missing, or if it has been closed for too long. It returns what was kept, in stream order.
func (g *gate) try(complete bool, now time.Time) []*task {
	if g.open() || (!complete && now.Sub(g.closedAt) < g.limit) {
		return nil
	}
	return g.release()
}

// release opens the gate and returns what was kept, in stream order.
func (g *gate) release() []*task {
	kept := g.kept
	g.kept, g.closedAt = nil, time.Time{}
	sortTasks(kept)
	return kept
}

func sortTasks(tasks []*task) {
	slices.SortFunc(tasks, func(a, b *task) int { return cmp.Compare(a.delivery.Sequence, b.delivery.Sequence) })
}
