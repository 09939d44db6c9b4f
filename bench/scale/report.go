package main

import (
	"fmt"
	"strings"
)

// report formats the results as a table.
func (m *measurements) report() string {
	var out strings.Builder
	out.WriteString("\n| replicas of the processor, webhook of 500 ms | measured | wanted |\n|---|---|---|\n")
	for _, l := range m.rows {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", l.what, l.got, l.want)
	}
	return out.String()
}
