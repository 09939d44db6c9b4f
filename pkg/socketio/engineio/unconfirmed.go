package engineio

import (
	"container/list"
	"sync"
)

// unconfirmed are the sessions that the layer above has not confirmed yet, oldest first, in all and by address. They
// have a budget of their own: whatever they do, confirmed sessions keep their places, and a session that is
// confirmed at once gets one.
type unconfirmed struct {
	max, maxPerAddress int // 0 is no limit

	mu        sync.Mutex
	all       list.List             // of *Session
	byAddress map[string]*list.List // of *Session; no empty lists
}

// unconfirmedEntry is a session's place, guarded by unconfirmed.mu.
type unconfirmedEntry struct {
	inAll, inAddress *list.Element
}

func (u *unconfirmed) init(opts Options) {
	u.max, u.maxPerAddress = opts.MaxUnconfirmed, opts.MaxUnconfirmedPerAddress
	u.byAddress = make(map[string]*list.List)
}

// add adds s as the newest, and closes the oldest beyond the limit.
func (u *unconfirmed) add(s *Session) {
	for _, old := range u.enter(s) {
		old.closeUnconfirmed()
	}
	if !s.isUnconfirmed() { // any more: another goroutine may have changed that meanwhile
		u.remove(s)
	}
}

func (u *unconfirmed) enter(s *Session) (tooMany []*Session) {
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

func (u *unconfirmed) takeLocked(s *Session) *Session {
	u.all.Remove(s.waiting.inAll)
	same := u.byAddress[s.address]
	if same.Remove(s.waiting.inAddress); same.Len() == 0 {
		delete(u.byAddress, s.address)
	}
	s.waiting = nil
	return s
}
