package slot

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkLook is one look for a crowd of requests, with every slot held for long but nobody's turn.
func BenchmarkLook(b *testing.B) {
	const slots, waiting = 2000, 512
	p := NewPool(slots, 1)
	shares := func(n int) []Share {
		return []Share{{"visitor", fmt.Sprint(n), 0}, {"address", fmt.Sprint(n), 0}, {"company", fmt.Sprint(n % 10), 0}}
	}
	for n := range slots {
		s, err := p.Acquire(b.Context(), 0, shares(n)...)
		if err != nil {
			b.Fatal(err)
		}
		s.Watch(func() { b.Error("got a slot cut off, want none") })
		s.left, s.took, s.since = time.Hour, time.Hour, time.Now()
	}
	p.looking = true // only the benchmark looks
	for n := range waiting {
		p.request(1, patience, shares(n))
	}
	for b.Loop() {
		p.turnsAt = time.Time{}
		p.cutOff(time.Now())
	}
}
