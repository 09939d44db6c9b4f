package nemesis

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"
)

// topology accepts every kind of fault.
func topology() []Target {
	return []Target{
		{Name: "gateway-1", Kind: "service", Faults: []string{Kill, Term, Pause, Rolling, ScaleUp, ScaleDown}},
		{Name: "gateway-1-nats", Kind: "link", Faults: []string{Cut, Delay, HalfOpen, NoAnswers}},
		{Name: "widget-api", Kind: "clock", Faults: []string{Clock, ClockDrift}},
		{Name: "redis", Kind: "engine", Faults: []string{Kill, Forget, Slow}},
		{Name: "nats", Kind: "engine", Faults: []string{Kill, Fill, Power, Leader}},
		{Name: "model", Kind: "dependency", Faults: []string{Dead, Slow}},
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	const lasts = time.Hour
	table := Draw(7, lasts, topology())
	if again := Draw(7, lasts, topology()); !slices.Equal(table, again) {
		t.Errorf("the seed 7 again: got\n%s, want\n%s", again, table)
	}
	if other := Draw(8, lasts, topology()); slices.Equal(table, other) {
		t.Error("got the same timetable for the seeds 7 and 8")
	}

	drawn := map[string]bool{}
	overlaps, pauses := 0, 0
	var busy time.Duration // until when a fault lasts
	for n, f := range table {
		drawn[f.Kind] = true
		instant := f.Kind == Forget || f.Kind == Leader
		if f.At < 0 || f.At+f.For > lasts || (f.For == 0) != instant || (f.Arg == 0) != (kinds[f.Kind] == nil) {
			t.Errorf("got %s", f)
		}
		switch {
		case n > 0 && f.At < busy:
			overlaps++
		case f.At >= busy+minPause:
			pauses++
		}
		busy = max(busy, f.At+f.For)
		for _, before := range table[:n] {
			if before.Target == f.Target && before.At+before.For > f.At {
				t.Errorf("got %s during %s", f, before)
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(drawn)), slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, want) {
		t.Errorf("got the kinds %v, want %v", got, want)
	}
	if overlaps < 20 || pauses < 20 {
		t.Errorf("got %d overlaps and %d pauses, want some of both", overlaps, pauses)
	}
	if got := Draw(7, lasts, nil); len(got) != 0 {
		t.Errorf("without targets: got %s", got)
	}
}

func TestParseTimetable(t *testing.T) {
	t.Parallel()
	table := Draw(1, time.Minute, topology())
	got, err := ParseTimetable("# a comment\n\n" + table.String())
	if err != nil || !slices.Equal(got, table) {
		t.Errorf("got\n%s, %v, want\n%s", got, err, table)
	}
	for _, text := range []string{
		"1s", "1s kill nats", "1s kill nats until 2s", "1s kill nats for 2s with", "1s kill nats for 2s by 3",
		"1s hug nats for 2s", "-1s kill nats for 2s", "1s kill nats for -2s", "x kill nats for 2s",
		"1s delay nats for 2s with x",
	} {
		if got, err := ParseTimetable(text); err == nil {
			t.Errorf("%q: got %v and no error", text, got)
		}
	}
}

func FuzzParseTimetable(f *testing.F) {
	f.Add(Draw(1, time.Minute, topology()).String())
	f.Add("# a comment\n\n1h2m0.000000003s clock widget-api for 1ms with -500")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ParseTimetable(text)
		if err != nil {
			return
		}
		again, err := ParseTimetable(table.String())
		if err != nil || !slices.Equal(again, table) {
			t.Errorf("%q: got %v, %v, want %v", text, again, err, table)
		}
	})
}

func TestShrink(t *testing.T) {
	t.Parallel()
	table := Draw(3, 10*time.Minute, topology())
	longFault := func(f Fault) bool { return f.For >= time.Second }
	first := slices.IndexFunc(table, longFault)
	second := first + 1 + slices.IndexFunc(table[first+1:], longFault)
	needed := []Fault{table[first], table[second]}
	runs := 0
	broken := func(t Timetable) bool { // both faults are there, the first for half a second at least
		runs++
		found := 0
		for _, f := range t {
			same := func(n Fault) bool { return n.At == f.At && n.Target == f.Target }
			if n := slices.IndexFunc(needed, same); n == 1 || n == 0 && f.For >= time.Second/2 {
				found++
			}
		}
		return found == len(needed)
	}
	got := Shrink(t.Context(), table, 1000, broken)
	if len(got) != 2 || got[0].At != needed[0].At || got[1].At != needed[1].At {
		t.Fatalf("got\n%s, want\n%v", got, needed)
	}
	if got[0].For >= time.Second || got[0].For < time.Second/2 || got[1].For >= 2*leastFor {
		t.Errorf("got\n%s, want shorter faults", got)
	}
	if runs > 200 {
		t.Errorf("got %d runs for %d faults", runs, len(table))
	}

	runs = 0
	if got := Shrink(t.Context(), table, 5, broken); runs != 5 || !broken(got) {
		t.Errorf("a budget of 5 runs: got %d runs and\n%s", runs, got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := Shrink(ended, table, 5, broken); !slices.Equal(got, table) {
		t.Errorf("an ended context: got\n%s", got)
	}
	always := func(Timetable) bool { return true }
	if got := Shrink(t.Context(), table, 5, always); got == nil || len(got) > 0 {
		t.Errorf("broken without faults: got %#v, want none", got)
	}
}
