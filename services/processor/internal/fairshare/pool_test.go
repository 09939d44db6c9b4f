package fairshare

import "testing"

// takeAll takes as many slots as the tenant gets.
func takeAll(s *Pool, tenant string) (n int) {
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
