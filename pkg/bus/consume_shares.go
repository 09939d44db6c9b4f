package bus

// The share of each tenant of the workers of a queue (consume_queue.go).

import "slices"

// share holds the tasks that a keyedQueue can run of one part of a tenant, which is the whole tenant if its deliveries
// have no parts. The queue's mu guards it.
type share struct {
	tenant  *tenant
	part    string
	keys    int          // number of keys in the queue
	ready   []*taskQueue // keys whose first task can run, oldest first
	running int          // number of running tasks
}

// tenant counts for all its shares.
type tenant struct {
	name    string
	shares  int // number of shares
	running int // number of running tasks
}

// shareKey is a part of a tenant; its part is empty if the deliveries have none.
type shareKey struct{ tenant, part string }

// shares decides whose task a keyedQueue runs next. Shares take turns. With limited set, a tenant's next task
// runs only while the tenant has fewer running tasks than the queue has free workers. So one busy tenant gets
// half of the workers, two get a third each, and n get an equal share each and leave one for the next tenant.
// A tenant above its share, because others have arrived, gives workers back as its tasks end. The parts of a tenant
// divide what it may get in the same way.
//
// The queue's mu guards it. Nothing is remembered of a tenant without keys.
type shares struct {
	limited bool
	tenants map[string]*tenant
	byKey   map[shareKey]*share
	turns   []*share // shares with ready keys, in the order of their turns
}

func newShares(limited bool) shares {
	return shares{limited: limited, tenants: make(map[string]*tenant), byKey: make(map[shareKey]*share)}
}

// join returns the share of a new key of the tenant's part.
func (s *shares) join(of shareKey) *share {
	known, ok := s.byKey[of]
	if !ok {
		whole := s.tenants[of.tenant]
		if whole == nil {
			whole = &tenant{name: of.tenant}
			s.tenants[of.tenant] = whole
		}
		whole.shares++
		known = &share{tenant: whole, part: of.part}
		s.byKey[of] = known
	}
	known.keys++
	return known
}

// leave removes a key from its share.
func (s *shares) leave(k *taskQueue) {
	k.share.keys--
	if k.share.keys > 0 {
		return
	}
	whole := k.share.tenant
	delete(s.byKey, shareKey{whole.name, k.share.part})
	whole.shares--
	if whole.shares == 0 {
		delete(s.tenants, whole.name)
	}
}

// add appends a key to the ready keys of its share.
func (s *shares) add(k *taskQueue) {
	if len(k.share.ready) == 0 {
		s.turns = append(s.turns, k.share)
	}
	k.share.ready = append(k.share.ready, k)
}

// take removes and returns the next key that may run while free workers are left, or nil.
func (s *shares) take(free int) *taskQueue {
	i := s.next(free)
	if i < 0 {
		return nil
	}
	turn := s.turns[i]
	s.turns = slices.Delete(s.turns, i, i+1)
	k := turn.ready[0]
	turn.ready[0] = nil
	turn.ready = turn.ready[1:]
	turn.addRunning(1)
	if len(turn.ready) == 0 {
		turn.ready = nil // frees the backing array
	} else {
		s.turns = append(s.turns, turn)
	}
	return k
}

// next returns the index of the share whose turn it is, or -1 if none may run.
func (s *shares) next(free int) int {
	return slices.IndexFunc(s.turns, func(turn *share) bool { return !s.limited || turn.mayRun(free) })
}

// mayRun reports whether one more task may run while that many workers are free.
func (s *share) mayRun(free int) bool {
	left := free - s.tenant.running // the tenant may get half of it, so that it then has as many as are free
	if s.part == "" {
		return left > 0
	}
	return 2*s.running < left
}

// addRunning changes the number of running tasks by n.
func (s *share) addRunning(n int) {
	s.running += n
	s.tenant.running += n
}

// drop removes the ready keys for which del returns true.
func (s *shares) drop(del func(*taskQueue) bool) {
	for _, turn := range s.turns {
		turn.ready = slices.DeleteFunc(turn.ready, del)
	}
	s.turns = slices.DeleteFunc(s.turns, func(turn *share) bool { return len(turn.ready) == 0 })
}

// ready returns the number of ready keys.
func (s *shares) ready() (n int) {
	for _, turn := range s.turns {
		n += len(turn.ready)
	}
	return n
}
