package slots

import "testing"

// takeAll takes as many slots as the tenant gets.
func takeAll(s *Slots, tenant string) (n int) {
	for s.Take(tenant) {
		n++
	}
	return n
}

// Tenants that take all they get leave slots for the next one, and get those of a tenant that has ended.
func TestShares(t *testing.T) {
	t.Parallel()
	s := New(60)
	want := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %d slots, want %d", what, got, want)
		}
	}
	want("room of the first", s.Room("a"), 30)
	want("the first", takeAll(s, "a"), 30)
	want("the second", takeAll(s, "b"), 15)
	want("the third", takeAll(s, "c"), 8)
	for range 30 {
		s.Release("a")
	}
	for range 60 { // requests of the others end, and new ones begin
		takeAll(s, "b")
		takeAll(s, "c")
		s.Release("b")
		s.Release("c")
	}
	takeAll(s, "c")
	takeAll(s, "b")
	want("the second of two", s.Held("b"), 20)
	want("the third of two", s.Held("c"), 20)
	want("another", takeAll(s, "d"), 10)
	want("all", s.Taken(), 50)
}

// A released slot wakes the oldest task whose tenant has room.
func TestTurns(t *testing.T) {
	t.Parallel()
	s := New(4)
	takeAll(s, "a") // two
	_, first := s.TakeOrWait("a", "1")
	_, second := s.TakeOrWait("a", "2")
	if _, again := s.TakeOrWait("a", "1"); again != first {
		t.Error("the same task again: got another channel, want the first")
	}
	if taken, _ := s.TakeOrWait("b", "3"); !taken {
		t.Error("another tenant: got no slot, want one")
	}
	s.Release("b")
	select {
	case <-first:
		t.Error("after the release of another tenant's slot: got a turn for a tenant with its share, want none")
	default:
	}
	s.Release("a")
	<-first
	select {
	case <-second:
		t.Error("after one release: got a turn for both, want one")
	default:
	}
	s.Release("a")
	<-second
}
