package knowledge

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlReader turns the tokens of a page into sections and blocks. It builds no tree, so neither depth nor missing end
// tags cost more than their length.
type htmlReader struct {
	outline *outline
	text    strings.Builder // of the current block
	heading int             // level of the heading that is being read; 0: none
	skipped atom.Atom       // element whose content is dropped; 0: none
	depth   int             // of elements of the same name in the skipped one
	content int             // depth in main and article, where a header belongs to the text
	pre     int             // depth in pre
	lists   []int           // numbers of the last items of the open lists; -1: not numbered
	marked  bool            // an item has its mark and no text yet
}

func readHTML(o *outline, text string) {
	r := htmlReader{outline: o}
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		switch kind {
		case html.ErrorToken: // the end: reading a string has no other error
			r.endBlock()
			return
		case html.TextToken:
			r.addText(string(tokens.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, hasAttributes := tokens.TagName()
			tag := atom.Lookup(name)
			r.start(tag, kind == html.SelfClosingTagToken)
			if tag == atom.Img && hasAttributes {
				r.addText(attribute(tokens, "alt"))
			}
		case html.EndTagToken:
			name, _ := tokens.TagName()
			r.end(atom.Lookup(name))
		}
	}
}

func attribute(tokens *html.Tokenizer, name string) string {
	for {
		key, value, more := tokens.TagAttr()
		if string(key) == name {
			return " " + string(value) + " "
		}
		if !more {
			return ""
		}
	}
}

func (r *htmlReader) start(tag atom.Atom, selfClosing bool) {
	if r.skipped != 0 {
		r.startInSkipped(tag)
		return
	}
	if r.skips(tag) {
		if !selfClosing {
			r.skipped = tag
			r.depth = 1
		}
		return
	}
	if level := headingLevel(tag); level > 0 {
		r.endBlock()
		r.heading = level
		return
	}
	switch tag {
	case atom.Main, atom.Article:
		r.content++
		r.endBlock()
	case atom.Pre:
		r.endBlock()
		r.pre++
	case atom.Ul, atom.Ol:
		r.startList(tag)
	case atom.Li:
		r.startItem()
	case atom.Td, atom.Th:
		r.text.WriteString(" | ")
	case atom.Br, atom.Tr, atom.Dt, atom.Dd, atom.Div:
		r.newLine()
	case atom.P:
		r.endParagraph()
	case atom.Table, atom.Blockquote, atom.Section, atom.Aside, atom.Dl, atom.Figure, atom.Hr, atom.Details,
		atom.Address, atom.Form, atom.Body:
		r.endBlock()
	}
}

// startInSkipped looks for the end of a skipped element whose end tag is missing: nested navigation has no main text.
func (r *htmlReader) startInSkipped(tag atom.Atom) {
	if tag == r.skipped {
		r.depth++
	}
	if tag == atom.Main || tag == atom.Article {
		r.skipped = 0
		r.start(tag, false)
	}
}

func (r *htmlReader) end(tag atom.Atom) {
	if r.skipped != 0 {
		if tag == r.skipped {
			r.depth--
		}
		if r.depth == 0 || tag == atom.Body {
			r.skipped = 0
		}
		return
	}
	if headingLevel(tag) > 0 {
		r.endBlock()
		return
	}
	switch tag {
	case atom.Main, atom.Article:
		r.content = max(0, r.content-1)
		r.endBlock()
	case atom.Pre:
		r.endBlock()
		r.pre = max(0, r.pre-1)
	case atom.Ul, atom.Ol:
		if len(r.lists) > 0 {
			r.lists = r.lists[:len(r.lists)-1]
		}
		if len(r.lists) == 0 {
			r.endBlock()
		}
	case atom.Td, atom.Th:
		r.text.WriteByte(' ')
	case atom.Tr, atom.Dt, atom.Dd, atom.Li, atom.Div:
		r.newLine()
	case atom.P:
		r.endParagraph()
	case atom.Table, atom.Blockquote, atom.Section, atom.Aside, atom.Dl, atom.Figure, atom.Details, atom.Address,
		atom.Form:
		r.endBlock()
	}
}

// skips reports whether an element has nothing of the text of its page.
func (r *htmlReader) skips(tag atom.Atom) bool {
	switch tag {
	case atom.Script, atom.Style, atom.Nav, atom.Footer, atom.Template, atom.Noscript, atom.Iframe, atom.Svg, atom.Title,
		atom.Textarea, atom.Select:
		return true
	case atom.Header:
		return r.content == 0
	}
	return false
}

func (r *htmlReader) startList(tag atom.Atom) {
	if len(r.lists) == 0 {
		r.endBlock()
	}
	number := -1
	if tag == atom.Ol {
		number = 0
	}
	r.lists = append(r.lists, number)
}

func (r *htmlReader) startItem() {
	r.marked = false
	r.newLine()
	r.marked = true
	if len(r.lists) == 0 {
		r.text.WriteString("- ")
		return
	}
	const deepest = 4 // deeper items are not indented further, or a hostile page would consist of spaces
	r.text.WriteString(strings.Repeat("  ", min(len(r.lists)-1, deepest)))
	last := len(r.lists) - 1
	if r.lists[last] < 0 {
		r.text.WriteString("- ")
		return
	}
	r.lists[last]++
	r.text.WriteString(strconv.Itoa(r.lists[last]))
	r.text.WriteString(". ")
}

func (r *htmlReader) newLine() {
	if r.heading > 0 {
		r.text.WriteByte(' ')
		return
	}
	if !r.marked {
		r.text.WriteByte('\n')
	}
}

// endParagraph ends a block, but only a line in a list, whose items stay together.
func (r *htmlReader) endParagraph() {
	if len(r.lists) > 0 {
		r.newLine()
		return
	}
	r.endBlock()
}

func (r *htmlReader) addText(text string) {
	if r.skipped != 0 {
		return
	}
	text = cleanText(text)
	if r.pre > 0 {
		r.text.WriteString(text)
		return
	}
	if text == "" {
		return
	}
	// Spaces at the ends separate inline elements.
	if isSpace(text[0]) {
		r.text.WriteByte(' ')
	}
	first := true
	for word := range strings.FieldsSeq(text) {
		if !first {
			r.text.WriteByte(' ')
		}
		first = false
		r.marked = false
		r.text.WriteString(word)
	}
	if !first && isSpace(text[len(text)-1]) {
		r.text.WriteByte(' ')
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' }

// endBlock hands the current block or heading to the outline.
func (r *htmlReader) endBlock() {
	text := r.text.String()
	r.text.Reset()
	r.marked = false
	if r.heading > 0 {
		r.outline.heading(r.heading, text)
		r.heading = 0
		return
	}
	if r.pre > 0 {
		r.outline.block(tidyLines(text))
		return
	}
	r.outline.block(tidyRows(text))
}

// tidyRows removes empty lines, spaces in excess, and the marks in front of the first cells of rows.
func tidyRows(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	for line := range strings.SplitSeq(text, "\n") {
		body := strings.TrimLeft(line, " ")
		indent := len(line) - len(body)
		fields := strings.Fields(body)
		if len(fields) > 0 && fields[0] == "|" {
			fields = fields[1:]
			indent = 0
		}
		if len(fields) == 0 || (len(fields) == 1 && fields[0] == "-") {
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		if listMarker(line) > 0 {
			out.WriteString(strings.Repeat(" ", min(indent, 8)))
		}
		out.WriteString(strings.Join(fields, " "))
	}
	return out.String()
}

func headingLevel(tag atom.Atom) int {
	switch tag {
	case atom.H1:
		return 1
	case atom.H2:
		return 2
	case atom.H3:
		return 3
	case atom.H4:
		return 4
	case atom.H5:
		return 5
	case atom.H6:
		return 6
	}
	return 0
}
