package knowledge

import "strings"

// markdownReader finds the blocks of a Markdown text, line by line. It is not a full CommonMark parser: it has no
// nested blocks, so its time does not depend on nesting, and anything that it does not know is text.
type markdownReader struct {
	outline *outline
	lines   []*strings.Builder // of the current block: a paragraph is one, a list or a table one for each row
	inList  bool               // an indented line continues an item instead of being code
	inTable bool               // each line is a row, with and without a mark at its beginning
	open    bool               // a comment without an end was met, and there is no other end to look for
	fence   string             // the marks that began the current code block; empty: none
	code    strings.Builder
}

func readMarkdown(o *outline, text string) {
	m := markdownReader{outline: o}
	text = skipFrontMatter(text)
	for text != "" {
		if rest, isComment := m.skipComment(text); isComment {
			m.endBlock()
			text = rest
			continue
		}
		line, rest, _ := strings.Cut(text, "\n")
		m.line(line)
		text = rest
	}
	m.endBlock()
}

// skipFrontMatter removes the settings of site generators at the beginning of a text.
func skipFrontMatter(text string) string {
	body, found := strings.CutPrefix(text, "---\n")
	if !found {
		return text
	}
	key, _, found := strings.Cut(body, ":")
	if !found || strings.ContainsAny(key, " \n") {
		return text
	}
	_, rest, found := strings.Cut(body, "\n---\n")
	if !found {
		return text
	}
	return rest
}

// skipComment removes a comment that begins the first line. A comment without an end is text.
func (m *markdownReader) skipComment(text string) (rest string, isComment bool) {
	begin := strings.TrimLeft(truncate(text, 8), " ")
	if m.fence != "" || m.open || !strings.HasPrefix(begin, "<!--") {
		return text, false
	}
	_, rest, isComment = strings.Cut(text, "-->")
	m.open = !isComment
	return rest, isComment
}

func (m *markdownReader) line(line string) {
	if m.fence != "" {
		m.codeLine(line)
		return
	}
	trimmed := strings.TrimSpace(line)
	indent := indentation(line)
	switch {
	case trimmed == "":
		m.endBlock()
	case fenceOf(trimmed) != "":
		m.endBlock()
		m.fence = fenceOf(trimmed)
	case indent >= 4 && len(m.lines) == 0 && !m.inList:
		m.fence = indented
		m.codeLine(line)
	case indent < 4 && m.atxHeading(trimmed):
	case m.setextHeading(trimmed):
	case isRule(trimmed):
		m.endBlock()
	case isTableRule(trimmed):
		m.inTable = true
	default:
		m.textLine(line, trimmed, indent)
	}
}

// indented is the fence of a code block that has none. It ends with the first line that is not indented.
const indented = "    "

func (m *markdownReader) codeLine(line string) {
	trimmed := strings.TrimSpace(line)
	if m.fence == indented && trimmed != "" && indentation(line) < 4 {
		m.endBlock()
		m.line(line)
		return
	}
	if m.fence != indented && closesFence(trimmed, m.fence) {
		m.endBlock()
		return
	}
	if m.fence == indented {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "\t"), indented)
	}
	m.code.WriteString(line)
	m.code.WriteByte('\n')
}

// textLine adds a line of a paragraph, a list, a quotation or a table.
func (m *markdownReader) textLine(line, trimmed string, indent int) {
	trimmed = strings.TrimLeft(trimmed, "> ")
	isFirst := len(m.lines) == 0
	isItem := listMarker(trimmed) > 0
	if isFirst || isItem || m.inTable || strings.HasPrefix(trimmed, "|") {
		m.newLine(indent)
	}
	if isItem {
		m.inList = true
	} else if isFirst && indent == 0 {
		m.inList = false
	}
	current := m.lines[len(m.lines)-1]
	if strings.TrimSpace(current.String()) != "" {
		current.WriteByte(' ')
	}
	isBroken := strings.HasSuffix(line, "  ") || strings.HasSuffix(line, "\\")
	if isBroken {
		trimmed = strings.TrimSuffix(trimmed, "\\")
	}
	current.WriteString(trimmed)
	if isBroken {
		m.newLine(indent)
	}
}

// newLine begins a line of the block. Deep nesting is not indented further, or a hostile text would become longer.
func (m *markdownReader) newLine(indent int) {
	const deepest = 8
	line := &strings.Builder{}
	line.WriteString(strings.Repeat(" ", min(indent, deepest)))
	m.lines = append(m.lines, line)
}

// endBlock ends the current block, and hands it to the outline.
func (m *markdownReader) endBlock() {
	if m.fence != "" {
		m.outline.block(tidyLines(m.code.String()))
		m.code.Reset()
		m.fence = ""
		return
	}
	var block strings.Builder
	for _, line := range m.lines {
		raw := line.String()
		text := strings.TrimLeft(raw, " ")
		if text == "" {
			continue
		}
		block.WriteString(raw[:len(raw)-len(text)])
		block.WriteString(inlineText(text))
		block.WriteByte('\n')
	}
	m.lines = nil
	m.inTable = false
	m.outline.block(tidyLines(block.String()))
}

func (m *markdownReader) heading(level int, text string) {
	m.endBlock()
	m.inList = false
	m.outline.heading(level, inlineText(text))
}

// atxHeading reports whether a line is a heading such as "## Orders", and begins its section.
func (m *markdownReader) atxHeading(trimmed string) bool {
	text := strings.TrimLeft(trimmed, "#")
	level := len(trimmed) - len(text)
	if level < 1 || level > headingLevels {
		return false
	}
	if text != "" && text[0] != ' ' && text[0] != '\t' {
		return false
	}
	text = strings.TrimSpace(text)
	if closed := strings.TrimRight(text, "#"); closed == "" || strings.HasSuffix(closed, " ") {
		text = closed
	}
	m.heading(level, text)
	return true
}

// setextHeading reports whether a line underlines the paragraph above it, which is a heading then.
func (m *markdownReader) setextHeading(trimmed string) bool {
	level := 0
	switch {
	case strings.Trim(trimmed, "=") == "":
		level = 1
	case strings.Trim(trimmed, "-") == "" && len(trimmed) > 1:
		level = 2
	}
	if level == 0 || len(m.lines) != 1 || m.inList {
		return false
	}
	text := m.lines[0].String()
	if strings.HasPrefix(text, "|") {
		return false
	}
	m.lines = nil
	m.heading(level, text)
	return true
}

// indentation returns how many columns of space a line begins with.
func indentation(line string) int {
	columns := 0
	for _, r := range line {
		switch r {
		case ' ':
			columns++
		case '\t':
			columns += 4
		default:
			return columns
		}
	}
	return columns
}

// fenceOf returns the marks that begin a fenced code block, or nothing.
func fenceOf(trimmed string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(trimmed, mark)
		size := len(trimmed) - len(rest)
		if size >= 3 && !strings.Contains(rest, mark) {
			return trimmed[:size]
		}
	}
	return ""
}

func closesFence(trimmed, fence string) bool {
	return strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == ""
}

// isRule reports whether a line is a horizontal line.
func isRule(trimmed string) bool {
	for _, mark := range []string{"-", "*", "_"} {
		if strings.Count(trimmed, mark) >= 3 && strings.Trim(trimmed, mark+" ") == "" {
			return true
		}
	}
	return false
}

// isTableRule reports whether a line separates the header of a table from its rows.
func isTableRule(trimmed string) bool {
	return strings.Contains(trimmed, "|") && strings.Contains(trimmed, "-") && strings.Trim(trimmed, "|-: ") == ""
}

// listMarker returns the length of the space and the marker that an item of a list begins with, or 0.
func listMarker(line string) int {
	text := strings.TrimLeft(line, " \t")
	space := len(line) - len(text)
	size := 0
	for size < len(text) && size < 9 && text[size] >= '0' && text[size] <= '9' {
		size++
	}
	switch {
	case size == 0 && text != "" && strings.IndexByte("-*+", text[0]) >= 0:
		size = 1
	case size > 0 && size < len(text) && strings.IndexByte(".)", text[size]) >= 0:
		size++
	default:
		return 0
	}
	if size >= len(text) || (text[size] != ' ' && text[size] != '\t') {
		return 0
	}
	return space + size
}
