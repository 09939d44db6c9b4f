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

// shed gives up on waiting tasks until no tenant holds more than [fairLevel], and returns how many of each tenant. A part
// keeps the first tasks of its keys, so that one with a single waiting task is handled. It sheds nothing while much
// of what it has shed before is still here: more would not make room sooner.
func (q *keyedQueue) shed(maxHeld, maxBytes int64) map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	each := maxBytes / maxHeld // a delivery weighs at least its part of the memory
	parts := q.weights(each)
	tenants, leaving := make(map[*tenant]int64), int64(0)
	for part, weight := range parts {
		if part.tenant.name == shedTenant {
			leaving += weight
			continue
		}
		tenants[part.tenant] += weight
	}
	if leaving > maxBytes/mostLeaving {
		return nil
	}
	most := fairLevel(tenants, maxBytes-leaving)
	shed := make(map[string]int)
	for of, weight := range tenants {
		if weight > most {
			tasks := q.shedTenant(of, parts, most, each)
			shed[of.name] = len(tasks)
			q.addLocked(tasks)
		}
	}
	return shed
}

// shedTenant removes waiting tasks of a tenant until its parts hold that much together, the largest less. Callers must
// hold mu.
func (q *keyedQueue) shedTenant(of *tenant, parts map[*share]int64, most, each int64) (tasks []*task) {
	own := make(map[*share]int64)
	for part, weight := range parts {
		if part.tenant == of {
			own[part] = weight
		}
	}
	level := highest(most, func(level int64) bool { return sumUpTo(own, level) <= most })
	for part, weight := range own {
		if weight > level {
			tasks = append(tasks, q.cutNewest(part, weight-level, each)...)
		}
	}
	return tasks
}

// weights returns what each share holds. Callers must hold mu.
func (q *keyedQueue) weights(each int64) map[*share]int64 {
	held := make(map[*share]int64)
	for _, k := range q.byKey {
		for _, t := range k.tasks {
			held[k.share] += max(each, t.bytes())
		}
	}
	return held
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

// highest returns the largest level up to most for which fits is true; it is true for 0 and up to one level.
func highest(most int64, fits func(level int64) bool) int64 {
	return int64(sort.Search(int(most), func(level int) bool { return !fits(int64(level) + 1) }))
}

// cutNewest removes waiting tasks of a share of at least that weight, those behind the most others of their key first
// and of equals the newest. It returns them as tasks that are given up. Callers must hold mu.
func (q *keyedQueue) cutNewest(of *share, weight, each int64) []*task {
	type place struct {
		in     *taskQueue
		behind int // number of tasks before it
	}
	var places []place
	for _, k := range q.byKey {
		if k.share != of {
			continue
		}
		first := 0
		if k.running || k.timer != nil {
			first = 1
		}
		for behind := first; behind < len(k.tasks); behind++ {
			places = append(places, place{k, behind})
		}
	}
	sequence := func(p place) uint64 { return p.in.tasks[p.behind].delivery.Sequence }
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.behind, a.behind), cmp.Compare(sequence(b), sequence(a)))
	})
	var cut []*task
	for _, p := range places {
		if weight <= 0 {
			break
		}
		t := p.in.tasks[p.behind]
		p.in.tasks[p.behind] = nil
		p.in.tasks = p.in.tasks[:p.behind]
		weight -= max(each, t.bytes())
		t.dead, t.of, t.key = errShed, shareKey{tenant: shedTenant}, shedTenant+t.key
		cut = append(cut, t)
	}
	q.shares.drop(func(k *taskQueue) bool { return len(k.tasks) == 0 })
	for _, k := range q.byKey {
		if len(k.tasks) == 0 {
			q.remove(k)
		}
	}
	sortTasks(cut)
	return cut
}
