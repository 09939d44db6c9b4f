// Package slot bounds what the clients of a process hold at once: uploads, downloads, the memory of answers.
//
// A [Pool] has a number of units. A caller takes some, in its own name and those of its shares (a visitor, an
// address, an application), or waits for them. Invariants:
//
//   - No share holds more than its part, so that no visitor, address or application takes the whole pool.
//   - A free slot goes to the caller whose widest share holds the fewest units, of equals to the one whose next
//     narrower share does, and so on, then to the one that waits the longest. So the callers of one company that
//     wait in large numbers delay no other company, and those of one visitor no other visitor of the company.
//   - A slot belongs to a client that moves its bytes. While somebody waits for the same units, the slot of
//     the slowest client below [minRate] is cut off. Without anybody waiting, a slow client is left alone.
//   - While others wait, a slot is held for a limited time: if its client has taken longer in total than a part of what
//     a caller waits at most ([fairPart]), it is cut off for that caller if it holds less, see [turn]. Clients just
//     above [minRate] do not block others, neither those of other companies nor those of their own.
//   - A crowd of waiting callers costs one pass over the slots in [lookEvery], see [Pool.look].
//   - A key without slots takes no memory.
//
// slot.go has the pool and its slots, look.go how clients are cut off for those that wait, line.go a bound of those
// that wait.
package slot

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// minRate is the rate in bytes a second below which a client is cut off while others wait: the largest
	// file in seven minutes.
	minRate = 64 << 10
	// fairPart: while a caller waits that holds less, a client may take a quarter of the time that the caller waits at
	// most. So several clients can be cut off, one after the other, before the caller is refused.
	fairPart = 4
	// grace is how long a client may stall before it counts as slow.
	grace = 2 * time.Second
)

// Share is one of the keys in whose name a slot is taken.
type Share struct {
	Of   string // the kind of the key, such as visitor
	Key  string
	Most int64 // units that the key may hold at once; 0: no bound
}

// holder is the key of a share. A pool has it while a slot or a waiting request names it.
type holder struct {
	of, key string
	units   int64 // in use
	named   int   // slots and waiting requests
}

type holderKey struct{ of, key string }

// claim is a share of a slot: the part that its holder may hold.
type claim struct {
	holder *holder
	most   int64
}

// Pool bounds the units in use. It is safe for concurrent use.
type Pool struct {
	each int64 // units of a new slot

	mu      sync.Mutex // guards all below, and the slots and holders
	free    int64
	holders map[holderKey]*holder
	slots   map[*Slot]struct{}
	waiting []*request // in the order of their arrival
	looking bool       // a [Pool.look] is due
	turnsAt time.Time  // when to look whose turn it is, see [turn]
}

// request is a caller that waits.
type request struct {
	slot    *Slot
	fair    time.Duration // how long others may take in all, see [fairPart]
	granted chan struct{} // closed when the slot is taken
	cut     []*Slot       // cut off for it; they may go to those that wait longer
}

// freeing returns the units that its cut slots still hold.
func (r *request) freeing() (units int64) {
	for _, s := range r.cut {
		if _, held := r.slot.pool.slots[s]; held && s.leaves {
			units += s.units
		}
	}
	return units
}

// NewPool returns a pool of that many units. A slot of [Pool.Acquire] takes so many of them (each); it may give
// a part back ([Slot.Shrink]).
func NewPool(units, each int64) *Pool {
	return &Pool{each: each, free: units, holders: map[holderKey]*holder{}, slots: map[*Slot]struct{}{}}
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
	if atMost <= 0 {
		return p.try(units, shares)
	}
	r := p.request(units, atMost, shares)
	timeout := time.NewTimer(atMost)
	defer timeout.Stop()
	select {
	case <-r.granted:
		return r.slot, nil
	case <-timeout.C:
		return p.withdraw(r)
	case <-ctx.Done():
		s, _ := p.withdraw(r)
		s.Release()
		return nil, ctx.Err()
	}
}

// try takes a slot if it fits now.
func (p *Pool) try(units int64, shares []Share) (*Slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leave(p.enqueue(units, 0, shares))
}

// request queues, and is granted at once if the slot fits.
func (p *Pool) request(units int64, atMost time.Duration, shares []Share) *request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.enqueue(units, atMost, shares)
	if len(p.waiting) > 0 && !p.looking {
		p.lookLater()
	}
	return r
}

// withdraw removes a request. It returns the slot if it was granted in the meantime.
func (p *Pool) withdraw(r *request) (*Slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leave(r)
}

func (p *Pool) enqueue(units int64, atMost time.Duration, shares []Share) *request {
	s := &Slot{pool: p, units: units, shares: make([]claim, len(shares))}
	for n, share := range shares {
		s.shares[n] = claim{holder: p.holder(share), most: share.Most}
	}
	r := &request{slot: s, fair: atMost / fairPart, granted: make(chan struct{})}
	p.waiting = append(p.waiting, r)
	p.grant()
	return r
}

// leave ends the wait of a request, see [Pool.withdraw].
func (p *Pool) leave(r *request) (*Slot, error) {
	place := slices.Index(p.waiting, r)
	if place < 0 {
		return r.slot, nil
	}
	p.waiting = slices.Delete(p.waiting, place, place+1)
	full := &FullError{}
	if share := p.fullShare(r.slot); share.holder != nil {
		full.Share = share.holder.of
	}
	p.forget(r.slot)
	p.grant() // it may have been in the way of smaller ones
	return nil, full
}

// holder returns the holder of a share, which is named once more.
func (p *Pool) holder(s Share) *holder {
	key := holderKey{s.Of, s.Key}
	h := p.holders[key]
	if h == nil {
		h = &holder{of: s.Of, key: s.Key}
		p.holders[key] = h
	}
	h.named++
	return h
}

// forget removes the holders that no other slot or request names.
func (p *Pool) forget(s *Slot) {
	for _, share := range s.shares {
		h := share.holder
		h.named--
		if h.named == 0 {
			delete(p.holders, holderKey{h.of, h.key})
		}
	}
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
	best := -1
	for place, r := range p.waiting {
		if p.fullShare(r.slot).holder != nil {
			continue
		}
		if best < 0 || compareHoldings(r.slot, p.waiting[best].slot) < 0 {
			best = place
		}
	}
	if best >= 0 && p.free < p.waiting[best].slot.units {
		return -1
	}
	return best
}

// compareHoldings compares what the shares of two slots hold: their widest ones, if these hold the same the next
// narrower ones, and so on.
func compareHoldings(a, b *Slot) int {
	for n := range max(len(a.shares), len(b.shares)) {
		if order := cmp.Compare(a.unitsOf(n), b.unitsOf(n)); order != 0 {
			return order
		}
	}
	return 0
}

// unitsOf returns the units that the widest share of a slot holds (0), or the next narrower one (1) and so on.
func (s *Slot) unitsOf(n int) int64 {
	if n >= len(s.shares) {
		return 0
	}
	return s.shares[len(s.shares)-1-n].holder.units
}

// fullShare returns the first share that may not hold the slot beside its others; the zero value if there is none.
func (p *Pool) fullShare(s *Slot) claim {
	for _, share := range s.shares {
		if share.most > 0 && share.holder.units+s.units > share.most {
			return share
		}
	}
	return claim{}
}

// add counts units that are taken, or, if negative, given back.
func (p *Pool) add(s *Slot, units int64) {
	p.free -= units
	for _, share := range s.shares {
		share.holder.units += units
	}
}

// Slot is a part of a pool in use, until [Slot.Release]. The client determines how long that takes:
// [Slot.Watch] says how to cut it off, and each of its reads or writes stands between [Slot.Await] and
// [Slot.Moved]. The zero value is not of any pool.
type Slot struct {
	pool   *Pool
	shares []claim // the widest last

	// guarded by the pool's mutex:
	units  int64
	cut    func()        // nil: the client cannot be cut off, or has been
	leaves bool          // the client has been cut off, and the slot will be released
	left   time.Duration // how much longer the client may take
	took   time.Duration // how long the client has taken in all
	since  time.Time     // when the current read or write began; zero: there is none
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
	s.leaves = false // a client that was cut off with its body may now read its answer
}

// Await begins a read or write, which waits for the client.
func (s *Slot) Await() {
	if s.pool == nil {
		return
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.since = time.Now() // after the lock, see Moved
}

// Moved ends it. The bytes buy the client time.
func (s *Slot) Moved(n int) {
	if s.pool == nil {
		return
	}
	now := time.Now() // before the lock: the client is not slow because others hold it
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	waited := now.Sub(s.since)
	s.took += waited
	s.left -= waited
	s.left = min(grace, s.left+time.Duration(n)*time.Second/minRate)
	s.since = time.Time{}
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
	s.pool.forget(s)
	s.cut = nil
	s.pool.grant()
}
