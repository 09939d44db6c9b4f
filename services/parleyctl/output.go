package parleyctl

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/parley-chat/parley/pkg/inspect"
)

// What --output may be.
const (
	outputTable = "table"
	outputJSON  = "json"
)

func (a *app) wantsJSON() bool { return a.flags.output == outputJSON }

// column is one column of a table, or one line of what is shown of a single thing.
type column[T any] struct {
	name string
	of   func(T) string
}

// printList prints a table, or a JSON array.
func printList[T any](a *app, items []T, columns ...column[T]) error {
	if a.wantsJSON() {
		if items == nil {
			items = []T{}
		}
		return a.printJSON(items)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	var names []string
	for _, c := range columns {
		names = append(names, strings.ToUpper(c.name))
	}
	printRow(w, names)
	for _, item := range items {
		var cells []string
		for _, c := range columns {
			cells = append(cells, cell(c.of(item)))
		}
		printRow(w, cells)
	}
	return w.Flush()
}

func printRow(w io.Writer, cells []string) {
	last := len(cells) - 1
	for i, c := range cells {
		if i < last {
			c += "\t"
		}
		_, _ = io.WriteString(w, c) // Flush says when it failed
	}
	_, _ = io.WriteString(w, "\n")
}

// printOne prints one thing, a line for each of its members, or as a JSON object. Members without a value are left out.
func printOne[T any](a *app, item T, members ...column[T]) error {
	if a.wantsJSON() {
		return a.printJSON(item)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, m := range members {
		if value := m.of(item); value != "" {
			printRow(w, []string{m.name, clean(value)})
		}
	}
	return w.Flush()
}

// printJSON keeps what is JSON already as it is.
func (a *app) printJSON(v any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// printLine is for what comes one by one: a JSON object a line.
func (a *app) printLine(v any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// note prints a remark to standard error.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintln(a.Err, clean(fmt.Sprintf(format, args...)))
}

// cell is a value of a table; an empty one is a dash, so that columns can be counted.
func cell(s string) string {
	if s = clean(s); s != "" {
		return s
	}
	return "-"
}

// clean takes out what would move the cursor, colour the screen or turn the text around: what is shown was written by others.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// shorten cuts a text for a table.
func shorten(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}

// timestamp is a time in Parley's format.
type timestamp = inspect.Time

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
