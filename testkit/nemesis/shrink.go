package nemesis

import (
	"context"
	"slices"
	"time"
)

// leastFor is the duration below which a fault is not shortened.
const leastFor = 200 * time.Millisecond

// Shrink returns the smallest timetable that it finds broken: first with fewer faults (delta debugging, ddmin: Zeller
// and Hildebrandt, 2002), then with shorter ones. The timetable itself is known to be broken. If it is broken without
// faults, the result is empty. Shrink calls broken at most budget times, and ends when ctx ends.
//
// A run may keep a promise by chance: broken should repeat it where that is likely.
func Shrink(ctx context.Context, t Timetable, budget int, broken func(Timetable) bool) Timetable {
	s := &shrinker{ctx: ctx, budget: budget, broken: broken}
	if s.try(Timetable{}) {
		return Timetable{}
	}
	return s.shorten(s.remove(t))
}

// shrinker counts the runs of one Shrink.
type shrinker struct {
	ctx    context.Context
	budget int
	broken func(Timetable) bool
}

// try reports whether a timetable is broken. It is not if nothing may run any more.
func (s *shrinker) try(t Timetable) bool {
	if s.budget <= 0 || s.ctx.Err() != nil {
		return false
	}
	s.budget--
	broken := s.broken(t)
	return broken && s.ctx.Err() == nil
}

// remove removes one of n parts as long as the rest is broken, and divides into smaller parts when no rest is.
func (s *shrinker) remove(t Timetable) Timetable {
	for n := 2; len(t) > 1; {
		rest, found := s.removePart(t, (len(t)+n-1)/n)
		switch {
		case found:
			t = rest
			n = max(n-1, 2)
		case n >= len(t):
			return t
		default:
			n = min(2*n, len(t))
		}
	}
	return t
}

// removePart returns the timetable without the first part of a size whose removal leaves it broken.
func (s *shrinker) removePart(t Timetable, size int) (rest Timetable, found bool) {
	for from := 0; from < len(t); from += size {
		rest = slices.Delete(slices.Clone(t), from, min(from+size, len(t)))
		if s.try(rest) {
			return rest, true
		}
	}
	return nil, false
}

// shorten halves the duration of each fault as long as the timetable is broken.
func (s *shrinker) shorten(t Timetable) Timetable {
	for n := range t {
		for t[n].For >= 2*leastFor {
			shorter := slices.Clone(t)
			shorter[n].For /= 2
			if !s.try(shorter) {
				break
			}
			t = shorter
		}
	}
	return t
}
