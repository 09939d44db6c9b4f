package bus

// Load shedding: a group that has been full for a while gives up on what its largest tenants hold, so that the
// deliveries of the others are pulled. The group's clock (sendProgress) calls it.

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	// shedAfter is how long a group must be full before it sheds, and not full before it is calm again. A backlog that
	// fast handlers work off in time is not shed.
	shedAfter = 5 * time.Second
	// A group is full from 7/8 of what it may hold: it pulls again from 15/16 (see group.removeHeld).
	fullPart, fullOf = 7, 8
	// mostLeaving: the group sheds no more while what is being given up is an eighth of what it may hold.
	mostLeaving = 8
	// shedTenant is the tenant of the deliveries that are given up, which therefore have their own share of the
	// handlers. No subject has such a token.
	shedTenant = " shed"
)

// errShed is why a delivery is given up. Its code keeps the payload out of DEAD: the stream has the original.
var errShed = apperr.New(apperr.TooMany, "TOO_MANY_WAITING", "Too many messages of the tenant were waiting")

// pressure is how long a group has been full. Only the group's clock uses it.
type pressure struct {
	fullSince, calmSince time.Time // zero: it has been calm; it is full
}

// observe records whether the group is full now, and reports whether it is time to shed.
func (p *pressure) observe(full bool, now time.Time) (shed bool) {
	if full {
		p.calmSince = time.Time{}
		if p.fullSince.IsZero() {
			p.fullSince = now
		}
		return now.Sub(p.fullSince) >= shedAfter
	}
	if p.calmSince.IsZero() {
		p.calmSince = now
	}
	if now.Sub(p.calmSince) >= shedAfter {
		p.fullSince = time.Time{}
	}
	return false
}

// shedLoad sheds if the group has been full for long enough.
func (g *group) shedLoad(now time.Time) {
	full := g.held.Load() >= g.maxHeld*fullPart/fullOf || g.bytes.Load() >= maxHeldBytes*fullPart/fullOf
	if !g.cfg.ShedLoad || !g.pressure.observe(full, now) {
		return
	}
	for tenant, n := range g.queue.shed(g.maxHeld, maxHeldBytes) {
		g.bus.log.Warn("too many deliveries of a tenant wait: given up", "consumer", g.cfg.Durable,
			"tenant", tenant, "deliveries", n)
	}
}

// shed gives up on waiting tasks, also those that wait for a retry, until no tenant holds more than [fairLevel], and
// returns how many of each tenant. A part keeps the first tasks of its keys if it can, so that a visitor with a single
// waiting message is answered. It sheds nothing while much of what it has shed before is still here: more would not
// make room sooner.
func (q *keyedQueue) shed(maxHeld, maxBytes int64) map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.holdings(maxBytes / maxHeld) // a delivery weighs at least its part of the memory
	if h.leaving > maxBytes/mostLeaving {
		return nil
	}
	most := fairLevel(h.tenants, maxBytes-h.leaving)
	need := sumAbove(h.tenants, most)
	shed := make(map[string]int)
	var cut []*task
	for of, weight := range h.tenants {
		if weight <= most || need <= 0 { // what a tenant gives is whole tasks: of many, the last ones need to give none
			continue
		}
		tasks := h.cutTenant(of, most)
		need -= h.weightOf(tasks...)
		shed[of.name] = len(tasks)
		cut = append(cut, tasks...)
	}
	q.giveUp(cut)
	return shed
}

// cutTenant removes waiting tasks of a tenant from their keys until it holds at most that weight. The largest parts lose
// the most.
func (h *holdings) cutTenant(of *tenant, most int64) (cut []*task) {
	own := make(map[*share]int64)
	for _, part := range h.parts[of] {
		own[part] = h.shares[part].weight
	}
	level := highest(most, func(level int64) bool { return sumUpTo(own, level) <= most })
	need := h.tenants[of] - most
	for part, weight := range own {
		if weight <= level || need <= 0 {
			continue
		}
		tasks := h.cutNewest(part, min(need, weight-level))
		need -= h.weightOf(tasks...)
		cut = append(cut, tasks...)
	}
	return cut
}

// giveUp adds tasks that have been cut from their keys as tasks that are given up. Callers must hold mu.
func (q *keyedQueue) giveUp(cut []*task) {
	q.shares.drop(func(k *taskQueue) bool { return len(k.tasks) == 0 })
	for _, k := range q.byKey {
		if len(k.tasks) == 0 {
			q.remove(k)
		}
	}
	sortTasks(cut)
	for _, t := range cut {
		t.dead = errShed
		t.tries = 0 // from now on they count the tries to publish the dead letter
		t.of, t.key = shareKey{tenant: shedTenant}, shedTenant+t.key
	}
	q.addLocked(cut)
}

// holdings are what a queue holds of each tenant, by weight.
type holdings struct {
	each    int64 // the least weight of a task
	leaving int64 // of the tasks that are being given up
	tenants map[*tenant]int64
	parts   map[*tenant][]*share
	shares  map[*share]*holding
}

// holding is what a queue holds of a share.
type holding struct {
	weight int64
	keys   []*taskQueue
}

// holdings returns what the queue holds. Callers must hold mu.
func (q *keyedQueue) holdings(each int64) *holdings {
	h := &holdings{
		each: each, tenants: make(map[*tenant]int64), parts: make(map[*tenant][]*share), shares: make(map[*share]*holding),
	}
	for _, k := range q.byKey {
		weight := h.weightOf(k.tasks...)
		if k.share.tenant.name == shedTenant {
			h.leaving += weight
			continue
		}
		of := h.shares[k.share]
		if of == nil {
			of = new(holding)
			h.shares[k.share] = of
			h.parts[k.share.tenant] = append(h.parts[k.share.tenant], k.share)
		}
		of.weight += weight
		of.keys = append(of.keys, k)
		h.tenants[k.share.tenant] += weight
	}
	return h
}

func (h *holdings) weightOf(tasks ...*task) (sum int64) {
	for _, t := range tasks {
		sum += max(h.each, t.bytes())
	}
	return sum
}

// fairLevel returns the largest weight that each tenant may keep so that as much is free, and at least a quarter: many
// tenants would otherwise leave too little for the group to pull again.
func fairLevel(held map[*tenant]int64, most int64) int64 {
	return highest(most, func(level int64) bool {
		used := sumUpTo(held, level)
		return used+level <= most && used <= most-most/4
	})
}

// sumUpTo returns the sum of the weights, of each at most level.
func sumUpTo[K comparable](weights map[K]int64, level int64) (sum int64) {
	for _, weight := range weights {
		sum += min(weight, level)
	}
	return sum
}

// sumAbove returns the sum of what the weights are above level.
func sumAbove[K comparable](weights map[K]int64, level int64) (sum int64) {
	for _, weight := range weights {
		sum += max(0, weight-level)
	}
	return sum
}

// highest returns the largest level up to most for which fits is true; it is true for 0 and up to one level.
func highest(most int64, fits func(level int64) bool) int64 {
	return int64(sort.Search(int(most), func(level int) bool { return !fits(int64(level) + 1) }))
}

// cutNewest removes waiting tasks of a share from their keys, of at least that weight if there are as many. It begins
// with those that the most tasks of their key precede, and of equals with the newest.
func (h *holdings) cutNewest(of *share, weight int64) (cut []*task) {
	type place struct {
		in    *taskQueue
		index int // in its tasks
	}
	var places []place
	for _, k := range h.shares[of].keys {
		first := 0
		if k.running || k.tasks[0].dead != nil {
			first = 1
		}
		for index := first; index < len(k.tasks); index++ {
			places = append(places, place{k, index})
		}
	}
	sequence := func(p place) uint64 { return p.in.tasks[p.index].delivery.Sequence }
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.index, a.index), cmp.Compare(sequence(b), sequence(a)))
	})
	for _, p := range places {
		if weight <= 0 {
			break
		}
		t := p.in.tasks[p.index]
		if p.index == 0 && p.in.timer != nil {
			p.in.endWait() // it has failed before
		}
		p.in.tasks[p.index] = nil
		p.in.tasks = p.in.tasks[:p.index]
		weight -= h.weightOf(t)
		cut = append(cut, t)
	}
	return cut
}
