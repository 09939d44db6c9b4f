package parleyctl

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/parley-chat/parley/pkg/chat"
)

// Values of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

func (a *app) wantsJSON() bool { return a.flags.output == outputJSON }

// column is one column of a table.
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
		_, _ = io.WriteString(w, c) // Flush reports the error
	}
	_, _ = io.WriteString(w, "\n")
}

// row is one line of a single item.
type row struct{ name, value string }

// rowsOf returns the columns of an item as rows.
func rowsOf[T any](item T, columns []column[T]) []row {
	rows := make([]row, len(columns))
	for i, c := range columns {
		rows[i] = row{c.name, c.of(item)}
	}
	return rows
}

// printOne prints rows, or the item as a JSON object. It omits rows without a value.
func printOne(a *app, item any, rows ...row) error {
	if a.wantsJSON() {
		return a.printJSON(item)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		if r.value != "" {
			printRow(w, []string{r.name, clean(r.value)})
		}
	}
	return w.Flush()
}

// printJSON encodes v, and leaves embedded JSON unchanged.
func (a *app) printJSON(v any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// printLine prints one of a sequence: a JSON object a line.
func (a *app) printLine(v any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// note prints a note to standard error.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintln(a.Err, clean(fmt.Sprintf(format, args...)))
}

// cell returns a table cell; an empty one is a dash, so that columns can be counted.
func cell(s string) string {
	s = clean(s)
	if s != "" {
		return s
	}
	return "-"
}

// clean removes characters that would move the cursor, change colours or reverse the text: the text comes from users.
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

// shorten truncates a text for a table.
func shorten(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	return string(runes[:limit-1]) + "…"
}

// timestamp is a time in Parley's format.
type timestamp = chat.Time

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
