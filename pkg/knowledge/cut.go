package knowledge

// This file cuts documents. markdown.go (with inline.go) and html.go read the formats, and hand the headings and blocks
// that they find to the outline.

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxPassage bounds the text of a passage, in bytes: some 400 tokens. Five of them leave room in the context of a
	// small model, and one is long enough for an answer with its conditions.
	maxPassage = 1500
	// maxHeading bounds each heading of a path, in bytes. Longer ones are text that is written as a heading.
	maxHeading = 200
	// headingLevels are those of Markdown and HTML.
	headingLevels = 6
	// pathSeparator stands between the headings of a passage.
	pathSeparator = " › "
)

// Cut cuts a document into passages: at its headings, and long parts at their paragraphs. The same document has the
// same passages. A document without text has none. The time is linear in the length, for any input.
func Cut(d Document) []Passage {
	o := outline{document: d}
	text := cleanText(d.Text)
	switch d.Format {
	case Markdown:
		readMarkdown(&o, text)
	case HTML:
		readHTML(&o, text)
	default:
		o.block(tidyLines(text))
	}
	o.endSection()
	return o.passages
}

// outline collects the sections of a document, which the readers of the formats find, and cuts each when it ends.
type outline struct {
	document Document
	headings [headingLevels]string // above the current section; empty: none at this level
	section  strings.Builder       // text of the current section
	passages []Passage
}

// heading ends the current section and begins one of a level from 1 to 6.
func (o *outline) heading(level int, text string) {
	o.endSection()
	text = strings.Join(strings.Fields(text), " ")
	o.headings[level-1] = truncate(text, maxHeading)
	for deeper := level; deeper < headingLevels; deeper++ {
		o.headings[deeper] = ""
	}
	if len(text) > maxHeading {
		o.block(text)
	}
}

// block adds a paragraph, a list, a table or code to the current section.
func (o *outline) block(text string) {
	if text == "" {
		return
	}
	if o.section.Len() > 0 {
		o.section.WriteString("\n\n")
	}
	o.section.WriteString(text)
}

func (o *outline) endSection() {
	path := o.path()
	for _, part := range split(o.section.String()) {
		o.passages = append(o.passages, Passage{
			DocumentID: o.document.ID,
			CompanyID:  o.document.CompanyID,
			Number:     len(o.passages) + 1,
			Title:      o.document.Title,
			Heading:    path,
			Address:    o.document.Address,
			Text:       part,
		})
	}
	o.section.Reset()
}

// path returns the headings above the current section, without a first one that repeats the document's title.
func (o *outline) path() string {
	var names []string
	for _, name := range o.headings {
		if name != "" {
			names = append(names, name)
		}
	}
	if len(names) > 0 && strings.EqualFold(names[0], strings.TrimSpace(o.document.Title)) {
		names = names[1:]
	}
	return strings.Join(names, pathSeparator)
}

// split cuts a text into parts of at most maxPassage bytes, of similar lengths.
func split(text string) []string {
	var parts []string
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return parts
		}
		end := len(text)
		if end > maxPassage {
			end = cutPoint(text)
		}
		part := strings.TrimRightFunc(text[:end], unicode.IsSpace)
		parts = append(parts, part)
		text = text[end:]
	}
}

// cutPoint returns where the first part of a text of more than maxPassage bytes ends: at a paragraph, else at a row
// of a table or a list, else at a sentence, else at a line, else at a word, else inside a word.
func cutPoint(text string) int {
	limit := firstPart(len(text))
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	window := text[:limit]
	// An earlier paragraph would leave a part that is too small to answer anything.
	least := limit / 3
	if end := strings.LastIndex(window, "\n\n"); end >= least {
		return end
	}
	if end := lastRow(window); end >= least {
		return end
	}
	if end := lastSentence(window); end >= least {
		return end
	}
	if end := strings.LastIndexByte(window, '\n'); end >= least {
		return end
	}
	if end := strings.LastIndexFunc(window, unicode.IsSpace); end > 0 {
		return end
	}
	return limit
}

// firstPart returns how long the first part of a text may be: an equal share with some play, so that the last part is
// not a rest of a few words.
func firstPart(length int) int {
	parts := (length + maxPassage - 1) / maxPassage
	share := length / parts
	return min(maxPassage, share+share/4)
}

// lastRow returns the end of the last line of a window that another row follows, or -1.
func lastRow(window string) int {
	for {
		end := strings.LastIndexByte(window, '\n')
		if end < 0 || beginsRow(window[end+1:]) {
			return end
		}
		window = window[:end]
	}
}

// lastSentence returns the end of the last sentence of a window that something follows in it, or -1.
func lastSentence(window string) int {
	for end := len(window) - 1; end > 0; end-- {
		if !utf8.RuneStart(window[end]) {
			continue
		}
		if endsSentence(window[:end], window[end:]) {
			return end
		}
	}
	return -1
}

func endsSentence(before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	next, size := utf8.DecodeRuneInString(after)
	if last == '。' || last == '！' || last == '？' {
		return true
	}
	if !unicode.IsSpace(next) || !strings.ContainsRune(".!?…", last) {
		return false
	}
	// A small letter follows an abbreviation more often than a sentence.
	follower, _ := utf8.DecodeRuneInString(after[size:])
	return !unicode.IsLower(follower) && !unicode.IsSpace(follower)
}

// beginsRow reports whether a line is a row of a table or an item of a list.
func beginsRow(line string) bool {
	return strings.HasPrefix(line, "|") || listMarker(line) > 0
}

// cleanText returns valid UTF-8 with \n as the end of a line, and no other control characters but tabs.
func cleanText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(cleanRune, text)
}

func cleanRune(r rune) rune {
	switch {
	case r == '\r', r == '\u2028':
		return '\n'
	case r == '\n', r == '\t':
		return r
	case r == '\uFEFF', r == '\u00AD': // byte order mark, soft hyphen
		return -1
	case unicode.IsControl(r):
		return ' '
	}
	return r
}

// tidyLines removes spaces at the ends of lines, and all but one of adjacent empty lines.
func tidyLines(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	empty := 0
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" {
			empty++
			continue
		}
		if out.Len() > 0 {
			out.WriteString("\n\n"[:1+min(empty, 1)])
		}
		empty = 0
		out.WriteString(line)
	}
	return out.String()
}

// truncate returns the beginning of a text, of at most size bytes, without a part of a character.
func truncate(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}
