package slot

import (
	"cmp"
	"slices"
	"time"
)

// This file cuts off clients for the requests that wait: those that are slow, and then those that have held their
// slots for long.
//
// A request waits for the first of its shares that is full, or for the pool. So there is one queue for each full share
// and one for the pool, and only the slots of that share are in its way.

const (
	// lookEvery is the interval in which a pool looks for clients to cut off while requests wait.
	lookEvery = 100 * time.Millisecond
	// turnsEvery is the interval in which it looks whose turn it is, unless it has just found one: each request may have
	// to be compared with each slot, and what decides are seconds.
	turnsEvery = time.Second
)

// lookLater starts a timer for the next look. There is at most one, and none without waiting requests.
func (p *Pool) lookLater() {
	p.looking = true
	time.AfterFunc(lookEvery, p.look)
}

// look cuts off clients, and comes again while requests wait.
func (p *Pool) look() {
	now := time.Now() // before the lock: the clients are not slow because others hold it
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.looking = false
		return
	}
	p.cutOff(now)
	p.lookLater()
}

// cutOff cuts off clients for all requests that wait.
func (p *Pool) cutOff(now time.Time) {
	queues := p.queues()
	p.sortIn(queues, now)
	for _, r := range p.waiting {
		queues[p.fullShare(r.slot).holder].cutSlow(r)
	}
	if now.Before(p.turnsAt) {
		return
	}
	p.turnsAt = now.Add(turnsEvery)
	for _, r := range p.waiting {
		q := queues[p.fullShare(r.slot).holder]
		q.cutForTurn(r, now)
		if q.leaves {
			p.turnsAt = now // another may follow when the slot is free
		}
	}
}

// queue is what is in the way of the requests that wait for the same share, or for the pool.
type queue struct {
	full   *holder // nil: the pool
	slow   []*Slot // below [minRate], the slowest first
	long   []*Slot // that may have been held for long enough, the longest first
	leaves bool    // a slot has been cut off and is about to become free
}

// queues returns a queue for each share that requests wait for, and with the key nil that for the pool.
func (p *Pool) queues() map[*holder]*queue {
	queues := map[*holder]*queue{}
	for _, r := range p.waiting {
		full := p.fullShare(r.slot).holder
		if queues[full] == nil {
			queues[full] = &queue{full: full}
		}
	}
	return queues
}

// sortIn puts the slots of clients that may be cut off into the queues that they are in the way of.
func (p *Pool) sortIn(queues map[*holder]*queue, now time.Time) {
	fair := slices.MinFunc(p.waiting, func(a, b *request) int { return cmp.Compare(a.fair, b.fair) }).fair
	for s := range p.slots {
		slow, long := s.arrears(now) > 0, s.taken(now) > fair
		if !s.leaves && !slow && !long {
			continue
		}
		if q := queues[nil]; q != nil {
			q.put(s, slow, long)
		}
		for _, share := range s.shares {
			if q := queues[share.holder]; q != nil {
				q.put(s, slow, long)
			}
		}
	}
	for _, q := range queues {
		slices.SortFunc(q.slow, func(a, b *Slot) int { return cmp.Compare(b.arrears(now), a.arrears(now)) })
		slices.SortFunc(q.long, func(a, b *Slot) int { return cmp.Compare(b.taken(now), a.taken(now)) })
	}
}

func (q *queue) put(s *Slot, slow, long bool) {
	q.leaves = q.leaves || s.leaves
	if slow {
		q.slow = append(q.slow, s)
	}
	if long {
		q.long = append(q.long, s)
	}
}

// cutSlow cuts off the slowest clients until the units are free that a request needs.
func (q *queue) cutSlow(r *request) {
	for missing := r.missing(q.full); missing > 0 && len(q.slow) > 0; q.slow = q.slow[1:] {
		s := q.slow[0]
		if s.leaves { // it was in another queue too
			continue
		}
		missing -= s.units
		q.cut(s, r)
	}
}

// missing returns how many units of the pool, or of a share, must become free for a request beyond those that are
// about to.
func (r *request) missing(full *holder) int64 {
	free := r.slot.pool.free
	if share := r.slot.pool.fullShare(r.slot); share.holder == full && full != nil {
		free = share.most - full.units
	}
	return r.slot.units - free - r.freeing()
}

func (q *queue) cut(s *Slot, r *request) {
	r.cut = append(r.cut, s)
	s.cut()
	s.cut = nil
	s.leaves = true
	q.leaves = true
}

// cutForTurn cuts off clients that have held their slots for long if it is the turn of a request, and none if they are
// not enough for it. One request follows the other: until the slots that have been cut off are free, it is not known
// what each share will hold.
func (q *queue) cutForTurn(r *request, now time.Time) {
	missing := r.missing(q.full)
	if q.leaves || missing <= 0 {
		return
	}
	t := turn{request: r, full: q.full, now: now, given: map[*holder]int64{}}
	for missing > 0 {
		s := t.choose(q.long)
		if s == nil {
			return
		}
		missing -= s.units
	}
	for _, s := range t.chosen {
		q.cut(s, r)
	}
}

// turn chooses the slots that a request gets in exchange. The request and a slot are compared by the widest shares in
// which they differ, of those that are narrower than the full one. So companies are compared with each other, and
// within a company that holds all of its part its visitors; nobody loses a slot to its own share. A slot is chosen if
//
//   - the share of the request, with what it gets, holds less than the other did: the larger of both becomes smaller.
//     What it gets is the smaller of both sizes, so that a large request may take many small slots one by one;
//   - or, without such a slot, if the share of the request holds nothing at all. Otherwise those that came first, each
//     with a single slot, would keep all others out for as long as they like.
type turn struct {
	request *request
	full    *holder // nil: the pool
	now     time.Time
	chosen  []*Slot
	given   map[*holder]int64 // units of the chosen slots
}

// choose returns a slot that has not been chosen, or nil if it is not the turn of the request.
func (t *turn) choose(long []*Slot) *Slot {
	var chosen *Slot
	for _, s := range long {
		if s.taken(t.now) <= t.request.fair {
			break
		}
		if s.leaves || slices.Contains(t.chosen, s) {
			continue
		}
		own, other := t.compared(s)
		if other == nil {
			continue
		}
		if own.units+min(s.units, t.request.slot.units) < other.units-t.given[other] {
			chosen = s
			break
		}
		if own.units == 0 && chosen == nil {
			chosen = s
		}
	}
	if chosen != nil {
		t.add(chosen)
	}
	return chosen
}

func (t *turn) add(s *Slot) {
	t.chosen = append(t.chosen, s)
	for _, share := range s.shares {
		t.given[share.holder] += s.units
	}
}

// compared returns the holders by which the request is compared with a slot; nil if they have the same ones.
func (t *turn) compared(s *Slot) (own, other *holder) {
	owns, others := t.request.slot.sharesIn(t.full), s.sharesIn(t.full)
	for n := 1; n <= min(len(owns), len(others)); n++ {
		own, other = owns[len(owns)-n].holder, others[len(others)-n].holder
		if own != other {
			return own, other
		}
	}
	return nil, nil
}

// sharesIn returns the shares that are narrower than one of them, or all without it.
func (s *Slot) sharesIn(full *holder) []claim {
	for n, share := range s.shares {
		if share.holder == full {
			return s.shares[:n]
		}
	}
	return s.shares
}

// arrears returns how much longer than allowed the client takes; not positive if it is fast enough, or the
// service is busy with it.
func (s *Slot) arrears(now time.Time) time.Duration {
	if s.cut == nil || s.since.IsZero() {
		return 0
	}
	return now.Sub(s.since) - s.left
}

// taken returns how long the client has taken in all; 0 if it cannot be cut off, or the service is busy with it.
func (s *Slot) taken(now time.Time) time.Duration {
	if s.cut == nil || s.since.IsZero() {
		return 0
	}
	return s.took + now.Sub(s.since)
}
