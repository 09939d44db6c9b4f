package main

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// report is the figures of all contenders, in the order in which they were first added.
type report struct {
	order   []string
	figures map[string]*figure
}

// figure is one line of the table.
type figure struct {
	unit   string
	values map[string]float64 // by contender
	target target
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

func newReport() *report { return &report{figures: map[string]*figure{}} }

func (r *report) add(contender, name, unit string, value float64, t target) {
	f := r.figures[name]
	if f == nil {
		f = &figure{unit: unit, values: map[string]float64{}, target: t}
		r.figures[name] = f
		r.order = append(r.order, name)
	}
	f.values[contender] = value
}

func (r *report) String() string {
	today := time.Now().Format(time.DateOnly)
	title := fmt.Sprintf("Realtime, %s, %d cores, %s.", today, runtime.NumCPU(), runtime.Version())
	t := rig.NewTable(title, "figure", "Node", "Parley", "Parley : Node", "target", "met")
	for _, name := range r.order {
		f := r.figures[name]
		node, parley := f.value("node"), f.value("parley")
		ratio := parley / node
		t.Row(name, number(node, f.unit), number(parley, f.unit), number(ratio, ""),
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
