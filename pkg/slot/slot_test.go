package slot

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// patience is how long callers wait at most; meanwhile others may take half a minute.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func acquire(t *testing.T, p *Pool, shares ...Share) *Slot {
	t.Helper()
	return acquireIn(t, p, time.Second, shares...)
}

func acquireIn(t *testing.T, p *Pool, atMost time.Duration, shares ...Share) *Slot {
	t.Helper()
	s, err := p.Acquire(t.Context(), atMost, shares...)
	if err != nil {
		t.Fatalf("Acquire: got %v, want a slot", err)
	}
	return s
}

// Each share has its part, and the pool its size; a share without slots takes no memory.
func TestSharesOfAPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, a, b := NewPool(2, 1), Share{"visitor", "a", 1}, Share{"visitor", "b", 0}
		first := acquire(t, p, a)
		var full *FullError
		if _, err := p.Acquire(t.Context(), time.Second, a); !errors.As(err, &full) || full.Share != "visitor" {
			t.Errorf("the share's second: got %v, want that the visitor's are in use", err)
		}
		second := acquire(t, p, b)
		if _, err := p.Acquire(t.Context(), time.Second, b); !errors.As(err, &full) || full.Share != "" {
			t.Errorf("the pool's third: got %v, want that all are in use", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Acquire(gone, time.Second, b); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that is gone: got %v, want its context's error", err)
		}
		go func() {
			time.Sleep(time.Second / 2)
			first.Release()
			first.Release() // no harm
		}()
		third := acquire(t, p, a)
		second.Release()
		third.Release()
		if p.free != 2 || len(p.holders) != 0 || len(p.slots) != 0 || len(p.waiting) != 0 {
			t.Errorf("got %+v, want nothing left", p)
		}
	})
}

// A slot that needs less gives the rest to those that wait.
func TestShrink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(3, 2)
		first := acquire(t, p)
		go first.Shrink(1)
		acquire(t, p).Release()
		first.Shrink(2) // does not grow
		first.Release()
		if p.free != 3 {
			t.Errorf("got %d free, want all", p.free)
		}
	})
}

// While somebody waits, the slowest client is cut off, in seconds; a client that moves its bytes is not, and
// neither is one that waits for the service.
func TestSlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const clients = 4
		p, cut := NewPool(clients, 1), [clients]bool{}
		var slots [clients]*Slot
		for n := range clients {
			slots[n] = acquire(t, p, Share{"application", string(rune('a' + n)), 0})
			slots[n].Watch(func() { cut[n] = true; go slots[n].Release() })
		}
		slots[0].Await() // stalls
		slots[2].Await() // one byte a second
		slots[3].Await() // fast enough; 1 does not wait for its client
		for range 60 {
			time.Sleep(time.Second)
			slots[2].Moved(1)
			slots[2].Await()
			slots[3].Moved(minRate)
			slots[3].Await()
		}
		if cut != [clients]bool{} {
			t.Fatalf("nobody waits: got %v cut off, want none", cut)
		}
		for _, want := range [][clients]bool{{true}, {true, false, true}} {
			began := time.Now()
			acquire(t, p)
			if took := time.Since(began); cut != want || took > time.Second {
				t.Errorf("got %v cut off in %v, want %v at once", cut, took, want)
			}
		}
		if _, err := p.Acquire(t.Context(), grace/2); err == nil || cut[3] {
			t.Errorf("no slow client is left: got %v, cut %v, want that all are in use", err, cut)
		}
	})
}

// Clients that keep just above the lowest rate keep nobody out: after a fair time one of those that hold the most is cut
// off for a caller that holds less, and none for a caller that holds as much.
func TestPacedClientsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, cut := NewPool(4, 1), ""
		var slots []*Slot
		for _, key := range []string{"a", "a", "a", "b"} {
			s := acquire(t, p, Share{"company", key, 0})
			s.Watch(func() { cut += key; go s.Release() })
			s.Await()
			slots = append(slots, s)
		}
		pace := func(seconds int) {
			for range seconds {
				time.Sleep(time.Second)
				for _, s := range slots {
					s.Moved(minRate)
					s.Await()
				}
			}
		}
		wait := func(company string) (granted chan *Slot) {
			granted = make(chan *Slot, 1)
			go func() {
				s, _ := p.Acquire(t.Context(), patience, Share{"company", company, 0})
				granted <- s
			}()
			return granted
		}
		same := wait("b")
		pace(20)
		if cut != "" {
			t.Errorf("after 20 s: got %q cut off, want nobody", cut)
		}
		pace(15)
		if cut != "a" {
			t.Errorf("after 35 s: got %q cut off, want one of those that hold the most", cut)
		}
		(<-same).Release()
	})
}

// paced are clients just above the lowest rate.
type paced struct {
	slots []*Slot
	cut   string // the keys of those that were cut off
}

// add takes a slot for a client of a company, whose visitor has that key.
func (c *paced) add(t *testing.T, p *Pool, company Share, visitor string) {
	t.Helper()
	s := acquire(t, p, Share{"visitor", visitor, 0}, company)
	s.Watch(func() { c.cut += visitor; go s.Release() })
	s.Await()
	c.slots = append(c.slots, s)
}

func (c *paced) move(seconds int) {
	for range seconds {
		time.Sleep(time.Second)
		for _, s := range c.slots {
			s.Moved(minRate)
			s.Await()
		}
	}
}

// waitFor waits for a slot, which it sends.
func waitFor(t *testing.T, p *Pool, units int64, shares ...Share) chan *Slot {
	granted := make(chan *Slot, 1)
	go func() {
		s, err := p.AcquireUnits(t.Context(), units, patience, shares...)
		if err != nil {
			t.Errorf("a waiting caller: got %v, want a slot", err)
		}
		granted <- s
	}()
	synctest.Wait()
	return granted
}

// Within a company that holds all of its part its visitors take turns: after a fair time one that holds more is cut off
// for one that holds less, and nobody for one that holds as much.
func TestPacedVisitorsTakeTurnsInTheirCompany(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ hold, waits, cut string }{
		"another holds more":  {"aaab", "b", "a"},
		"another holds all":   {"aaaa", "b", "a"},
		"all hold as much":    {"aabb", "b", ""},
		"it holds all itself": {"aaaa", "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, company, clients := NewPool(100, 1), Share{"company", "a", 4}, &paced{}
				for _, visitor := range test.hold {
					clients.add(t, p, company, string(visitor))
				}
				granted := waitFor(t, p, 1, Share{"visitor", test.waits, 0}, company)
				clients.move(20)
				if clients.cut != "" {
					t.Errorf("after 20 s: got %q cut off, want nobody", clients.cut)
				}
				clients.move(20)
				if clients.cut != test.cut {
					t.Errorf("after 40 s: got %q cut off, want %q", clients.cut, test.cut)
				}
				for _, s := range clients.slots {
					s.Release()
				}
				(<-granted).Release()
			})
		})
	}
}

// Visitors that hold one slot each do not keep out one that holds none. It is admitted once: until the slot is free,
// its second request takes no other.
func TestEachWithOneSlotKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, company, cut := NewPool(100, 1), Share{"company", "a", 3}, []*Slot{}
		for _, visitor := range []string{"a", "b", "c"} {
			s := acquire(t, p, Share{"visitor", visitor, 0}, company)
			s.Watch(func() { cut = append(cut, s) })
			s.Await()
			s.took = patience / fairPart
		}
		first := waitFor(t, p, 1, Share{"visitor", "d", 0}, company)
		second := waitFor(t, p, 1, Share{"visitor", "d", 0}, company)
		time.Sleep(grace / 2)
		synctest.Wait()
		if len(cut) != 1 {
			t.Errorf("got %d cut off, want one", len(cut))
		}
		for _, s := range cut {
			s.Release()
		}
		(<-first).Release()
		(<-second).Release()
	})
}

// A client that was cut off with its body may read its answer, and is cut off again if it does not.
func TestAClientIsCutOffAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1, 1)
		s := acquire(t, p)
		s.Watch(func() {
			go func() {
				s.Watch(func() { go s.Release() })
				s.Await()
			}()
		})
		s.Await()
		acquireIn(t, p, 3*grace).Release()
	})
}

// A free slot of a company goes to its visitor that holds the fewest, not to the first of a crowd.
func TestFreeSlotGoesToTheSmallestVisitor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, company := NewPool(100, 1), Share{"company", "a", 2}
		crowd := Share{"visitor", "crowd", 0}
		first, second := acquire(t, p, crowd, company), acquire(t, p, crowd, company)
		more := waitFor(t, p, 1, crowd, company)
		other := waitFor(t, p, 1, Share{"visitor", "other", 0}, company)
		first.Release()
		(<-other).Release()
		(<-more).Release()
		second.Release()
	})
}

// A large request takes many small slots of a share that holds more, but none before they are enough for it.
func TestALargeRequestTakesItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size, large = 8, 4
		p, clients, b := NewPool(size, 1), &paced{}, Share{"company", "b", 0}
		own := acquire(t, p, b)
		for n := 1; n < size; n++ {
			if n == large {
				clients.move(10)
			}
			clients.add(t, p, Share{"company", "a", 0}, "a")
		}
		granted := waitFor(t, p, large, b)
		clients.move(25)
		if clients.cut != "" {
			t.Errorf("too few have had their time: got %q cut off, want none in vain", clients.cut)
		}
		clients.move(10)
		if len(clients.cut) != large {
			t.Errorf("got %q cut off, want what the request takes", clients.cut)
		}
		(<-granted).Release()
		own.Release()
	})
}

// A request is compared with a slot by the widest shares in which they differ, within the share that is full.
func TestSharesThatAreCompared(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ request, slot, full, own, other string }{
		"companies":                   {"v a c", "w b d", "", "c", "d"},
		"addresses in a company":      {"v a c", "w b c", "", "a", "b"},
		"addresses in a full company": {"v a c", "w b c", "c", "a", "b"},
		"visitors of an address":      {"v a c", "w a c", "c", "v", "w"},
		"visitors of a full address":  {"v a c", "w a d", "a", "v", "w"},
		"one visitor":                 {"v a c", "v a c", "c", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holders := map[string]*holder{"": nil}
			slot := func(keys string) *Slot {
				s := &Slot{}
				for key := range strings.FieldsSeq(keys) {
					if holders[key] == nil {
						holders[key] = &holder{key: key}
					}
					s.shares = append(s.shares, claim{holder: holders[key]})
				}
				return s
			}
			turn := turn{request: &request{slot: slot(test.request)}}
			other := slot(test.slot)
			turn.full = holders[test.full]
			gotOwn, gotOther := turn.compared(other)
			if gotOwn != holders[test.own] || gotOther != holders[test.other] {
				t.Errorf("got %+v and %+v, want %q and %q", gotOwn, gotOther, test.own, test.other)
			}
		})
	}
}

// blockedOnMutex reports whether a goroutine waits for a mutex in that function.
func blockedOnMutex(function string) bool {
	buffer := make([]byte, 1<<20)
	stacks := string(buffer[:runtime.Stack(buffer, true)])
	return slices.ContainsFunc(strings.Split(stacks, "\n\n"), func(stack string) bool {
		return strings.Contains(stack, "[sync.Mutex.Lock") && strings.Contains(stack, function)
	})
}

// The time that a client's report waits for the pool does not count as the client's.
func TestWaitingForThePoolIsNotSlow(t *testing.T) {
	t.Parallel()
	p := NewPool(1, 1)
	s := acquire(t, p)
	defer s.Release()
	s.Await()
	since := s.since
	p.mu.Lock()
	moved := make(chan struct{})
	go func() { s.Moved(1); close(moved) }()
	for !blockedOnMutex("slot.(*Slot).Moved") {
		runtime.Gosched()
	}
	waits := time.Now()
	for !time.Now().After(waits) {
	}
	p.mu.Unlock()
	<-moved
	if most := waits.Sub(since); s.took > most {
		t.Errorf("got %v, want at most the %v until it waited for the pool", s.took, most)
	}
}

// Who waits for its own share does not end the slots of others.
func TestOnlyTheShareIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, cut := NewPool(3, 1), ""
		for _, key := range []string{"a", "b"} {
			s := acquire(t, p, Share{"application", key, 1})
			s.Watch(func() { cut += key; go s.Release() })
			s.Await()
		}
		time.Sleep(time.Minute)
		if acquire(t, p, Share{"application", "b", 1}); cut != "b" {
			t.Errorf("got %q cut off, want b", cut)
		}
	})
}

// Slow clients that wait for a slot are cut off in their turn: the last in line gets its slot, whose client
// it cut off first.
func TestLineOfSlowClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow = 10
		p, ended := NewPool(2, 1), make(chan struct{}, slow)
		for range slow {
			go func() {
				s, err := p.Acquire(t.Context(), patience)
				if err != nil {
					t.Errorf("a slow client: got %v, want a slot", err)
					return
				}
				s.Watch(func() { go s.Release() })
				s.Await()
				ended <- struct{}{}
			}()
		}
		synctest.Wait()
		began := time.Now()
		s, err := p.Acquire(t.Context(), time.Minute)
		if took := time.Since(began); err != nil || took > slow*grace {
			t.Errorf("got %v after %v, want a slot after those before it in line", err, took)
		}
		s.Release()
		for range slow {
			<-ended
		}
	})
}

// Many waiting callers of one company do not delay another: a slot that becomes free goes to the company that
// holds the fewest.
func TestFreeSlotGoesToTheSmallest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const took, crowd = 500 * time.Millisecond, 100
		p := NewPool(4, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var crowds sync.WaitGroup
		for n := range crowd {
			crowds.Go(func() {
				s, err := p.Acquire(ctx, patience, Share{"company", []string{"a", "b"}[n%2], 2})
				if err == nil {
					time.Sleep(took)
					s.Release()
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		acquire(t, p, Share{"company", "c", 2}).Release()
		if waited := time.Since(began); waited > took {
			t.Errorf("got a slot after %v, want it when the first of the others ends", waited)
		}
		cancel()
		crowds.Wait()
	})
}

// A caller that does not wait cuts off nobody, however slow the clients are.
func TestWithoutWaitingNobodyIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, user, cut := NewPool(2, 1), Share{"user", "a", 1}, false
		s := acquire(t, p, user)
		s.Watch(func() { cut = true })
		s.Await()
		time.Sleep(time.Minute)
		for range 100 {
			if _, err := p.Acquire(t.Context(), 0, user); err == nil || cut {
				t.Fatalf("got %v, cut off %v; want that the user's are in use", err, cut)
			}
		}
	})
}

// A large slot waits for its turn, and smaller ones that come later do not take what becomes free before it has
// enough.
func TestALargeSlotDoesNotStarve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 4
		p := NewPool(size, 1)
		var held [size]*Slot
		for n := range held {
			held[n] = acquire(t, p)
		}
		large := make(chan *Slot, 1)
		go func() {
			s, err := p.AcquireUnits(t.Context(), size, patience)
			if err != nil {
				t.Errorf("the large slot: got %v, want it", err)
			}
			large <- s
		}()
		synctest.Wait()
		held[0].Release()
		if _, err := p.Acquire(t.Context(), time.Second); err == nil {
			t.Error("a later small slot overtook the large one")
		}
		for _, s := range held[1:] {
			s.Release()
		}
		(<-large).Release()
		acquire(t, p).Release()
	})
}
