package engineio

// Sessions that the layer above has not confirmed yet, for example because they have shown no token: their
// number is bounded, in total and by address, and the oldest makes room for the newest.

import (
	"container/list"
	"sync"
)

// unconfirmed lists the sessions that the layer above has not confirmed, oldest first, in total and by address. Their
// limit is separate, so that a flood of them neither closes confirmed sessions nor keeps out a session that is
// confirmed quickly.
type unconfirmed struct {
	max, maxPerAddress int // 0: no limit

	mu        sync.Mutex
	all       list.List             // of *Session
	byAddress map[string]*list.List // of *Session; no empty lists
}

// unconfirmedEntry is a session's position in the lists, guarded by unconfirmed.mu.
type unconfirmedEntry struct {
	inAll, inAddress *list.Element
}

func (u *unconfirmed) init(opts Options) {
	u.max, u.maxPerAddress = opts.MaxUnconfirmed, opts.MaxUnconfirmedPerAddress
	u.byAddress = make(map[string]*list.List)
}

// add adds s as the newest and closes the oldest sessions that exceed the limits.
func (u *unconfirmed) add(s *Session) {
	for _, old := range u.insert(s) {
		old.closeUnconfirmed()
	}
	if !s.isUnconfirmed() { // confirmed or closed meanwhile
		u.remove(s)
	}
}

func (u *unconfirmed) insert(s *Session) (tooMany []*Session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.waiting != nil {
		return nil
	}
	same := u.byAddress[s.address]
	if same == nil {
		same = list.New()
		u.byAddress[s.address] = same
	}
	s.waiting = &unconfirmedEntry{inAll: u.all.PushBack(s), inAddress: same.PushBack(s)}
	if u.maxPerAddress > 0 && same.Len() > u.maxPerAddress {
		tooMany = append(tooMany, u.takeLocked(same.Front().Value.(*Session)))
	}
	if u.max > 0 && u.all.Len() > u.max {
		tooMany = append(tooMany, u.takeLocked(u.all.Front().Value.(*Session)))
	}
	return tooMany
}

// remove removes s if present.
func (u *unconfirmed) remove(s *Session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.waiting != nil {
		u.takeLocked(s)
	}
}

// takeLocked removes s from both lists and returns it.
func (u *unconfirmed) takeLocked(s *Session) *Session {
	u.all.Remove(s.waiting.inAll)
	same := u.byAddress[s.address]
	same.Remove(s.waiting.inAddress)
	if same.Len() == 0 {
		delete(u.byAddress, s.address)
	}
	s.waiting = nil
	return s
}
