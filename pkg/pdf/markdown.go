package pdf

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// markdown collects the text of pages. The lines of a paragraph stay lines, which Markdown joins.
type markdown struct{ out strings.Builder }

// page adds a page, unless it has no text.
func (m *markdown) page(number int, text string) {
	text = body(text)
	if text == "" {
		return
	}
	if m.out.Len() > 0 {
		m.out.WriteString("\n")
	}
	m.out.WriteString("# Page " + strconv.Itoa(number) + "\n\n" + text + "\n")
}

// broken is a word that a hyphen parts at the end of a line. PDFium writes most of these hyphens as U+0002, in place of
// the end of the line too.
var broken = regexp.MustCompile(`(\pL)(?:\x02(?:\r?\n)?|-\r?\n)(\p{Ll})`)

// body returns the text of a page with its words joined, its lines trimmed and its marks escaped.
func body(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = broken.ReplaceAllString(text, "$1$2")
	text = strings.Map(clean, text)
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Join(strings.Fields(line), " ")
		isFirst := len(lines) == 0 || lines[len(lines)-1] == "" // of a paragraph
		if line != "" || !isFirst {
			lines = append(lines, escape(line))
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// clean drops control characters, and what is no character.
func clean(r rune) rune {
	switch {
	case r == '\n':
		return r
	case r == '\x02', r == '\uFFFE':
		return '-'
	case r == '\u00AD', r == '\uFEFF', r == '\uFFFF': // soft hyphen, byte order mark
		return -1
	case unicode.IsControl(r):
		return ' '
	}
	return r
}

// marks are what Markdown reads anywhere in a line.
var marks = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "<", `\<`)

// escape returns a line as Markdown. Items of lists stay items.
func escape(line string) string {
	if item, found := strings.CutPrefix(line, "• "); found {
		return "- " + marks.Replace(item)
	}
	line = marks.Replace(line)
	isRule := line != "" && strings.Trim(line, "-=") == "" // it would make a heading of the line above
	if isRule || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ">") || strings.HasPrefix(line, "~~~") {
		return `\` + line
	}
	return line
}
