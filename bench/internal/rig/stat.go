package rig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Median returns the median of values, the upper of two middle ones.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// Quantile returns the q-quantile of sorted; zero if it is empty.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var zero T
		return zero
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// PerThousand returns CPU seconds per 1,000 operations.
func PerThousand(cpu time.Duration, operations int) float64 {
	return cpu.Seconds() * 1000 / float64(max(1, operations))
}

// Milliseconds formats a latency.
func Milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }

// Table is a Markdown table of docs/benchmarks.md.
type Table struct{ text strings.Builder }

// NewTable returns a table under a sentence that says what was measured.
func NewTable(title string, columns ...string) *Table {
	t := &Table{}
	fmt.Fprintf(&t.text, "\n%s\n\n", title)
	t.Row(columns...)
	t.text.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.text.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

func (t *Table) String() string { return t.text.String() }
