// Package slot bounds what the clients of a process hold at once: uploads, downloads, the memory of answers.
//
// A [Pool] has a number of units. A caller takes some, in its own name and those of its shares (a visitor, an
// address, an application), or waits for them. Invariants:
//
//   - No share holds more than its part, so that no visitor, address or application takes the whole pool.
//   - A free slot goes to the caller whose widest share holds the fewest units, of equals to the one that
//     waits the longest. So the callers of one company that wait in large numbers delay no other company.
//   - A slot belongs to a client that moves its bytes. While somebody waits for the same units, the slot of
//     the slowest client below [minRate] is cut off. Without anybody waiting, a slow client is left alone.
//   - While others wait, a slot is held for a limited time: if its client has taken longer than [fairTime] in total,
//     it is cut off for a caller whose widest share holds less. Clients just above [minRate] do not block others.
//   - A key without slots takes no memory.
package slot

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// minRate is the rate in bytes a second below which a client is cut off while others wait: the largest
	// file in seven minutes.
	minRate = 64 << 10
	// fairTime is the longest total waiting time for a client while others wait that hold less: the largest file at
	// about 1 MiB/s.
	fairTime = 30 * time.Second
	// grace is how long a client may stall before it counts as slow.
	grace = 2 * time.Second
	// lookEvery is the interval in which a waiting caller looks for slow clients.
	lookEvery = 100 * time.Millisecond
)

// Share is one of the keys in whose name a slot is taken.
type Share struct {
	Of   string // the kind of the key, such as visitor
	Key  string
	Most int64 // units that the key may hold at once; 0: no bound
}

func (s Share) id() string { return s.Of + ":" + s.Key }

// Pool bounds the units in use. It is safe for concurrent use.
type Pool struct {
	each int64 // units of a new slot

	mu      sync.Mutex // guards all below, and the slots
	free    int64
	used    map[string]int64 // by share
	slots   map[*Slot]struct{}
	waiting []*request // in the order of their arrival
}

// request is a caller that waits.
type request struct {
	slot    *Slot
	granted chan struct{} // closed when the slot is taken
	cut     []*Slot       // cut off for it; they may go to those that wait longer
}

// freeing returns the units that its cut slots still hold.
func (r *request) freeing() (units int64) {
	for _, s := range r.cut {
		if _, held := r.slot.pool.slots[s]; held {
			units += s.units
		}
	}
	return units
}

// NewPool returns a pool of that many units. A slot of [Pool.Acquire] takes so many of them (each); it may give
// a part back ([Slot.Shrink]).
func NewPool(units, each int64) *Pool {
	return &Pool{each: each, free: units, used: map[string]int64{}, slots: map[*Slot]struct{}{}}
}

// FullError reports that no slot was free in time.
type FullError struct {
	Share string // the kind of the share that holds as much as it may; empty: the whole pool is in use
}

// Error implements error.
func (e *FullError) Error() string {
	if e.Share == "" {
		return "all slots are in use"
	}
	return "all slots of the " + e.Share + " are in use"
}

// Acquire takes a slot in the name of its shares, the widest last. It waits for one at most that long, and
// returns a [*FullError] then, or the error of ctx if that ends first. A caller that does not wait cuts off
// nobody.
func (p *Pool) Acquire(ctx context.Context, atMost time.Duration, shares ...Share) (*Slot, error) {
	return p.AcquireUnits(ctx, p.each, atMost, shares...)
}

// AcquireUnits is Acquire for a slot of another size. No share may be smaller than that.
func (p *Pool) AcquireUnits(
	ctx context.Context, units int64, atMost time.Duration, shares ...Share,
) (*Slot, error) {
	r := p.request(&Slot{pool: p, units: units, shares: shares})
	if atMost <= 0 {
		return p.withdraw(r)
	}
	timeout, look := time.NewTimer(atMost), time.NewTicker(lookEvery)
	defer timeout.Stop()
	defer look.Stop()
	for {
		select {
		case <-r.granted:
			return r.slot, nil
		case <-look.C:
			p.cutSlowest(r)
		case <-timeout.C:
			return p.withdraw(r)
		case <-ctx.Done():
			s, _ := p.withdraw(r)
			s.Release()
			return nil, ctx.Err()
		}
	}
}

// request queues, and is granted at once if the slot fits.
func (p *Pool) request(s *Slot) *request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &request{slot: s, granted: make(chan struct{})}
	p.waiting = append(p.waiting, r)
	p.grant()
	return r
}

// withdraw removes a request. It returns the slot if it was granted in the meantime.
func (p *Pool) withdraw(r *request) (*Slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	place := slices.Index(p.waiting, r)
	if place < 0 {
		return r.slot, nil
	}
	p.waiting = slices.Delete(p.waiting, place, place+1)
	full := &FullError{Share: p.fullShare(r.slot).Of}
	p.grant() // it may have been in the way of smaller ones
	return nil, full
}

// grant takes the slots of requests whose turn it is, one after the other, while they fit.
func (p *Pool) grant() {
	for {
		place := p.next()
		if place < 0 {
			return
		}
		r := p.waiting[place]
		p.waiting = slices.Delete(p.waiting, place, place+1)
		p.slots[r.slot] = struct{}{}
		p.add(r.slot, r.slot.units)
		close(r.granted)
	}
}

// next returns the place in the queue of the request whose turn it is, or -1 if the pool has no room for it or
// nobody waits for the pool. Smaller requests do not overtake it: it would starve.
func (p *Pool) next() int {
	best, fewest := -1, int64(0)
	for place, r := range p.waiting {
		if p.fullShare(r.slot) != (Share{}) {
			continue
		}
		if used := p.usedBeside(r.slot); best < 0 || used < fewest {
			best, fewest = place, used
		}
	}
	if best >= 0 && p.free < p.waiting[best].slot.units {
		return -1
	}
	return best
}

// usedBeside returns the units that the widest share of a slot holds.
func (p *Pool) usedBeside(s *Slot) int64 {
	if len(s.shares) == 0 {
		return 0
	}
	return p.used[s.shares[len(s.shares)-1].id()]
}

// fullShare returns the first share that may not hold the slot beside its others; the zero value if there is none.
func (p *Pool) fullShare(s *Slot) Share {
	for _, share := range s.shares {
		if share.Most > 0 && p.used[share.id()]+s.units > share.Most {
			return share
		}
	}
	return Share{}
}

// add counts units that are taken, or, if negative, given back.
func (p *Pool) add(s *Slot, units int64) {
	p.free -= units
	for _, share := range s.shares {
		id := share.id()
		if p.used[id] += units; p.used[id] == 0 {
			delete(p.used, id)
		}
	}
}

// cutSlowest cuts off the clients in the way of a request, until the units are free that it needs: the slowest ones,
// and then those that took the longest.
func (p *Pool) cutSlowest(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, share := time.Now(), p.fullShare(r.slot)
	late := func(s *Slot) time.Duration { return s.arrears(now) }
	long := func(s *Slot) time.Duration {
		if p.usedBeside(s) <= p.usedBeside(r.slot)+r.slot.units {
			return 0
		}
		return s.overtime(now)
	}
	for freeing := r.freeing(); freeing < r.slot.units; {
		worst := p.worst(share, late)
		if worst == nil {
			worst = p.worst(share, long)
		}
		if worst == nil {
			return
		}
		freeing += worst.units
		r.cut = append(r.cut, worst)
		worst.cut()
		worst.cut = nil
	}
}

// worst returns the slot of a share, or of all, for which a measure is the largest; nil if it is positive for none.
func (p *Pool) worst(share Share, measure func(*Slot) time.Duration) *Slot {
	var found *Slot
	var most time.Duration
	for s := range p.slots {
		if share != (Share{}) && !s.has(share) {
			continue
		}
		if measured := measure(s); measured > most {
			found = s
			most = measured
		}
	}
	return found
}

// Slot is a part of a pool in use, until [Slot.Release]. The client determines how long that takes:
// [Slot.Watch] says how to cut it off, and each of its reads or writes stands between [Slot.Await] and
// [Slot.Moved]. The zero value is not of any pool.
type Slot struct {
	pool   *Pool
	shares []Share

	// guarded by the pool's mutex:
	units int64
	cut   func()        // nil: the client cannot be cut off, or has been
	left  time.Duration // how much longer the client may take
	took  time.Duration // how long the client has taken in all
	since time.Time     // when the current read or write began; zero: there is none
}

// Watch allows that the client is cut off from now on. cut runs at most once, not after Release, and under
// the pool's lock: it only sets the deadlines of the connection.
func (s *Slot) Watch(cut func()) {
	if s.pool == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.cut, s.left = cut, grace
}

// Await begins a read or write, which waits for the client.
func (s *Slot) Await() {
	if s.pool == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.since = time.Now()
}

// Moved ends it. The bytes buy the client time.
func (s *Slot) Moved(n int) {
	if s.pool == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	waited := time.Since(s.since)
	s.took += waited
	s.left -= waited
	s.left = min(grace, s.left+time.Duration(n)*time.Second/minRate)
	s.since = time.Time{}
}

// arrears returns how much longer than allowed the client takes; not positive if it is fast enough, or the
// service is busy with it.
func (s *Slot) arrears(now time.Time) time.Duration {
	if s.cut == nil || s.since.IsZero() {
		return 0
	}
	return now.Sub(s.since) - s.left
}

// overtime returns how much longer than [fairTime] the client has taken in all; not positive if it has not.
func (s *Slot) overtime(now time.Time) time.Duration {
	if s.cut == nil || s.since.IsZero() {
		return 0
	}
	return s.took + now.Sub(s.since) - fairTime
}

func (s *Slot) has(share Share) bool {
	return slices.ContainsFunc(s.shares, func(own Share) bool { return own.id() == share.id() })
}

// Shrink gives back all but that many units.
func (s *Slot) Shrink(units int64) {
	if s.pool == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if _, held := s.pool.slots[s]; !held || units >= s.units {
		return
	}
	s.pool.add(s, units-s.units)
	s.units = units
	s.pool.grant()
}

// Release gives the units back. It may be called again, and on a nil slot.
func (s *Slot) Release() {
	if s == nil || s.pool == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if _, held := s.pool.slots[s]; !held {
		return
	}
	delete(s.pool.slots, s)
	s.pool.add(s, -s.units)
	s.cut = nil
	s.pool.grant()
}
