package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
)

// median returns the median of values, the upper of two middle ones.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// quantile returns the q-quantile of sorted; zero if it is empty.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// perThousand returns CPU seconds per 1,000 operations.
func perThousand(cpu time.Duration, operations int) float64 {
	return cpu.Seconds() * 1000 / float64(max(1, operations))
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// table is a Markdown table of docs/benchmarks.md.
type table struct{ strings.Builder }

// newTable returns a table under a sentence that says what was measured.
func newTable(title string, columns ...string) *table {
	t := &table{}
	_, _ = fmt.Fprintf(t, "\n%s\n\n", title)
	t.row(columns...)
	t.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	return t
}

func (t *table) row(cells ...string) { t.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

// comparison is the figures of all contenders, in the order in which they were first added.
type comparison struct{ figures []*figure }

// figure is one line of a comparison.
type figure struct {
	name, unit string
	values     map[string]float64 // by contender
	target     target
}

// target is what our value has to meet; without a text there is none.
type target struct {
	text string
	met  func(ours, ratio float64) bool
}

func atMost(limit float64) target {
	return target{fmt.Sprintf("at most %.1fx", limit), func(_, ratio float64) bool { return ratio <= limit }}
}

func atLeast(limit float64) target {
	return target{fmt.Sprintf("at least %.0fx", limit), func(_, ratio float64) bool { return ratio >= limit }}
}

func zero() target { return target{"0", func(ours, _ float64) bool { return ours == 0 }} }

// figure returns the line with a name; a new one if there is none.
func (c *comparison) figure(name string) *figure {
	for _, f := range c.figures {
		if f.name == name {
			return f
		}
	}
	f := &figure{name: name, values: map[string]float64{}}
	c.figures = append(c.figures, f)
	return f
}

// String returns the table; nothing if no gateway was measured.
func (c *comparison) String() string {
	if len(c.figures) == 0 {
		return ""
	}
	today := time.Now().Format(time.DateOnly)
	title := fmt.Sprintf("Realtime, %s, %d cores, %s.", today, runtime.NumCPU(), runtime.Version())
	t := newTable(title, "figure", "Node", "Parley", "Parley : Node", "target", "met")
	for _, f := range c.figures {
		node, parley := f.value("node"), f.value("parley")
		ratio := parley / node
		t.row(f.name, number(node, f.unit), number(parley, f.unit), number(ratio, ""),
			f.target.text, f.met(parley, ratio))
	}
	return t.String()
}

// value returns a contender's value, or NaN.
func (f *figure) value(contender string) float64 {
	if v, measured := f.values[contender]; measured {
		return v
	}
	return math.NaN()
}

func (f *figure) met(ours, ratio float64) string {
	switch {
	case f.target.met == nil || math.IsNaN(ours) || math.IsNaN(ratio) && ours != 0:
		return ""
	case f.target.met(ours, ratio):
		return "yes"
	default:
		return "**no**"
	}
}

// number prints a figure with its significant digits.
func number(v float64, unit string) string {
	digits := 0
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return ""
	case v == math.Trunc(v):
	case v < 1:
		digits = 3
	case v < 10:
		digits = 2
	case v < 100:
		digits = 1
	}
	return strings.TrimSpace(fmt.Sprintf("%.*f %s", digits, v, unit))
}
