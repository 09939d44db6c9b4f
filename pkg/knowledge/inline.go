package knowledge

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// inlineReader turns the text of a Markdown block into plain text: links become their text, code stays as it is, and
// marks of emphasis, tags and escapes go. It reads the text once from left to right. What turns out to be a mark only
// later, such as the bracket of a link, is first written, and cut out at the end.
type inlineReader struct {
	text     string
	out      []byte
	cuts     []cutRange     // of out, to be removed
	brackets []int          // positions in out of brackets that are open
	openers  map[string]int // marks of emphasis that are open, by the mark: positions in out
	ticks    map[int]int    // beginning of a run of backticks: beginning of the next run of the same length
}

type cutRange struct{ from, to int }

// inlineText returns the text of a block as people read it.
func inlineText(text string) string {
	if !strings.ContainsAny(text, "`*_~[]<&\\!") {
		return text
	}
	r := inlineReader{text: text, openers: map[string]int{}}
	for at := 0; at < len(text); {
		at += r.step(at)
	}
	return r.result()
}

// step reads what begins at a position, and returns its length.
func (r *inlineReader) step(at int) int {
	switch r.text[at] {
	case '\\':
		return r.escape(at)
	case '`':
		return r.codeSpan(at)
	case '*', '_', '~':
		return r.emphasis(at)
	case '!':
		if strings.HasPrefix(r.text[at:], "![") {
			return 1
		}
	case '[':
		r.brackets = append(r.brackets, len(r.out))
	case ']':
		return r.link(at)
	case '<':
		return r.tag(at)
	case '&':
		return r.entity(at)
	}
	r.out = append(r.out, r.text[at])
	return 1
}

func (r *inlineReader) escape(at int) int {
	if at+1 < len(r.text) && isPunctuation(rune(r.text[at+1])) {
		r.out = append(r.out, r.text[at+1])
		return 2
	}
	r.out = append(r.out, '\\')
	return 1
}

// codeSpan copies code between two runs of as many backticks.
func (r *inlineReader) codeSpan(at int) int {
	if r.ticks == nil {
		r.ticks = pairTicks(r.text)
	}
	size := runLength(r.text, at)
	end, found := r.ticks[at]
	if !found {
		r.out = append(r.out, r.text[at:at+size]...)
		return size
	}
	code := r.text[at+size : end]
	r.out = append(r.out, strings.TrimSpace(code)...)
	return end + size - at
}

// pairTicks finds the next run of the same length for each run of backticks, from right to left, in one pass.
func pairTicks(text string) map[int]int {
	next := map[int]int{}
	nearest := map[int]int{} // length: position
	for end := len(text); end > 0; end-- {
		if text[end-1] != '`' {
			continue
		}
		begin := end - 1
		for begin > 0 && text[begin-1] == '`' {
			begin--
		}
		size := end - begin
		if position, found := nearest[size]; found {
			next[begin] = position
		}
		nearest[size] = begin
		end = begin + 1
	}
	return next
}

// emphasis removes a pair of marks such as ** and **. A mark without a partner is text.
func (r *inlineReader) emphasis(at int) int {
	size := runLength(r.text, at)
	mark := r.text[at : at+size]
	from := len(r.out)
	r.out = append(r.out, mark...)
	if size > 3 || mark == "~" {
		return size
	}
	opens, closes := r.flanks(at, size)
	opener, isOpen := r.openers[mark]
	switch {
	case closes && isOpen:
		r.cuts = append(r.cuts, cutRange{opener, opener + size}, cutRange{from, from + size})
		delete(r.openers, mark)
	case opens:
		r.openers[mark] = from
	}
	return size
}

// flanks reports whether a run of marks may open and may close emphasis (CommonMark, 6.2).
func (r *inlineReader) flanks(at, size int) (opens, closes bool) {
	before, _ := utf8.DecodeLastRuneInString(r.text[:at])
	if at == 0 {
		before = ' '
	}
	after, _ := utf8.DecodeRuneInString(r.text[at+size:])
	if at+size == len(r.text) {
		after = ' '
	}
	spaceBefore, spaceAfter := unicode.IsSpace(before), unicode.IsSpace(after)
	markBefore, markAfter := isPunctuation(before), isPunctuation(after)
	opens = !spaceAfter && (!markAfter || spaceBefore || markBefore)
	closes = !spaceBefore && (!markBefore || spaceAfter || markAfter)
	if r.text[at] == '_' {
		opens, closes = opens && (!closes || markBefore), closes && (!opens || markAfter)
	}
	return opens, closes
}

// link removes the brackets and the address of a link or an image. Its text stays, and so does an address of the web,
// which the visitor may need.
func (r *inlineReader) link(at int) int {
	if len(r.brackets) == 0 {
		r.out = append(r.out, ']')
		return 1
	}
	opener := r.brackets[len(r.brackets)-1]
	r.brackets = r.brackets[:len(r.brackets)-1]
	rest := r.text[at+1:]
	size := linkTarget(rest)
	if size == 0 {
		r.out = append(r.out, ']')
		return 1
	}
	r.cuts = append(r.cuts, cutRange{opener, opener + 1})
	address, _, _ := strings.Cut(strings.Trim(rest[1:size-1], "<> "), " ")
	if isWebAddress(address) && string(r.out[opener+1:]) != address {
		r.out = append(r.out, " ("+address+")"...)
	}
	return 1 + size
}

// linkTarget returns the length of the "(address)" that follows the text of a link, or 0. It never looks beyond the
// next bracket, so that all calls together take linear time.
func linkTarget(rest string) int {
	if rest == "" || rest[0] != '(' {
		return 0
	}
	depth := 0
	for at := range len(rest) {
		switch rest[at] {
		case '(':
			depth++
		case ')':
			depth--
		case '[', ']':
			return 0
		}
		if depth == 0 {
			return at + 1
		}
	}
	return 0
}

func isWebAddress(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// tag removes a tag or a comment of HTML, and the marks around an address. Anything else in angle brackets is text,
// such as a placeholder.
func (r *inlineReader) tag(at int) int {
	rest := r.text[at+1:]
	end := strings.IndexAny(rest, "<>")
	if end < 0 || rest[end] == '<' {
		r.out = append(r.out, '<')
		return 1
	}
	inside := rest[:end]
	name, _, _ := strings.Cut(strings.Trim(inside, "/ "), " ")
	name = strings.ToLower(name)
	switch {
	case isWebAddress(inside):
		r.out = append(r.out, inside...)
	case name == "br":
		r.out = append(r.out, '\n')
	case inlineTags[name]:
	case strings.HasPrefix(inside, "!--") && strings.HasSuffix(inside, "--"):
	default:
		r.out = append(r.out, '<')
		return 1
	}
	return end + 2
}

// inlineTags are the elements that Markdown texts have beside Markdown.
var inlineTags = words(`a b blockquote center code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li
mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var`)

// entity decodes a character reference such as &amp;.
func (r *inlineReader) entity(at int) int {
	const longest = 33 // &CounterClockwiseContourIntegral;
	end := strings.IndexByte(truncate(r.text[at:], longest), ';')
	if end < 0 {
		r.out = append(r.out, '&')
		return 1
	}
	decoded := html.UnescapeString(r.text[at : at+end+1])
	r.out = append(r.out, strings.Map(cleanRune, decoded)...)
	return end + 1
}

// result returns what was written, without the cuts.
func (r *inlineReader) result() string {
	drop := make([]bool, len(r.out))
	for _, c := range r.cuts {
		for at := c.from; at < c.to; at++ {
			drop[at] = true
		}
	}
	kept := r.out[:0]
	for at, b := range r.out {
		if !drop[at] {
			kept = append(kept, b)
		}
	}
	return string(kept)
}

// runLength returns how often the byte at a position is repeated from there on.
func runLength(text string, at int) int {
	end := at
	for end < len(text) && text[end] == text[at] {
		end++
	}
	return end - at
}

func isPunctuation(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsPunct(r) || unicode.IsSymbol(r))
}
