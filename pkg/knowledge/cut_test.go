package knowledge_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/knowledge"
)

// maxPassage is the bound of the package, in bytes.
const maxPassage = 1500

type section struct{ heading, text string }

func TestCut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		format knowledge.Format
		text   string
		want   []section
	}{
		"headings": {
			format: knowledge.Markdown,
			text:   "before\n# Shop\nall of it\n## Orders ##\n### Returns\nwithin 30 days\n## Hours\n9 to 5\n",
			want: []section{
				{"", "before"},
				{"", "all of it"},
				{"Orders › Returns", "within 30 days"},
				{"Hours", "9 to 5"},
			},
		},
		"another first heading than the title": {
			format: knowledge.Markdown,
			text:   "# Help\n## Orders\nwithin 30 days",
			want:   []section{{"Help › Orders", "within 30 days"}},
		},
		"underlined headings": {
			format: knowledge.Markdown,
			text:   "Orders\n======\nfirst\n\nReturns\n---\nsecond\n\n---\n\nthird",
			want:   []section{{"Orders", "first"}, {"Orders › Returns", "second\n\nthird"}},
		},
		"a question and its answer": {
			format: knowledge.Markdown,
			text:   "# When do you open?\n\nAt nine.\n",
			want:   []section{{"When do you open?", "At nine."}},
		},
		"a heading in code is code": {
			format: knowledge.Markdown,
			text:   "# A\n```sh\n# not a heading\n\necho *hi* [a](b)\n```\n\n    # nor this\n    x = _y_\n\nafter",
			want:   []section{{"A", "# not a heading\n\necho *hi* [a](b)\n\n# nor this\nx = _y_\n\nafter"}},
		},
		"a fence without an end": {
			format: knowledge.Markdown,
			text:   "# A\n~~~\n# b\n```\nc",
			want:   []section{{"A", "# b\n```\nc"}},
		},
		"no heading": {
			format: knowledge.Markdown,
			text:   "#tag\n\n####### seven",
			want:   []section{{"", "#tag\n\n####### seven"}},
		},
		"marks within lines": {
			format: knowledge.Markdown,
			text: "A **bold** and *soft* _word_, `code_of *it*`, ``a ` b``, snake_case_name, 5 * 3, \\*kept\\*, &lt;b&gt;,\n" +
				"<b>tag</b>, <appId>, ~~old~~, *.example.com, a [link](docs/a.md), [web](https://a.example/x_(y)),\n" +
				"<https://b.example>, ![picture](x.png), [x] and [[nested](a)](b).",
			want: []section{{"", "A bold and soft word, code_of *it*, a ` b, snake_case_name, 5 * 3, *kept*, <b>, tag, " +
				"<appId>, old, *.example.com, a link, " +
				"web (https://a.example/x_(y)), https://b.example, picture, [x] and nested."}},
		},
		"lists": {
			format: knowledge.Markdown,
			text:   "- one\n  and more\n- **two**\n  - three\n\n1. first\n2. second\n",
			want:   []section{{"", "- one and more\n- two\n  - three\n\n1. first\n2. second"}},
		},
		"a table": {
			format: knowledge.Markdown,
			text:   "| a | b |\n|---|:-:|\n| `x` | [y](z) |\n\nc | d\n--|--\ne | f\n",
			want:   []section{{"", "| a | b |\n| x | y |\n\nc | d\ne | f"}},
		},
		"quotations, comments, front matter": {
			format: knowledge.Markdown,
			text:   "---\ntitle: x\n---\n> quoted\n> line\n\n<!-- a\n\n# b -->\nrest <!-- c --> of it\n\n<!-- open",
			want:   []section{{"", "quoted line\n\nrest  of it\n\n<!-- open"}},
		},
		"Windows": {
			format: knowledge.Markdown,
			text:   "\uFEFF# A\r\nb  \r\nc\r\n",
			want:   []section{{"A", "b\nc"}},
		},
		"a page": {
			format: knowledge.HTML,
			text: `<!doctype html><html><head><title>no</title><style>a{}</style></head><body><nav><h2>Menu</h2></nav>
				<header><h1>Site</h1></header><main><header><h1>Fish &amp; chips</h1></header><p>One <b>bold</b>
				word.<p>Two&nbsp;words<br>three</p><h2>List<script>no()</script></h2><ul><li><p>a</p><li>b
				<ol><li>c</ol></ul><table><tr><th>k<th>v</tr><tr><td>1</td><td>2</td></tr></table>
				<pre>x
  y</pre><footer>no</footer></main>`,
			want: []section{
				{"Fish & chips", "One bold word.\n\nTwo words\nthree"},
				{"Fish & chips › List", "- a\n- b\n  1. c\n\nk | v\n1 | 2\n\nx\n  y"},
			},
		},
		"navigation without an end": {
			format: knowledge.HTML,
			text:   `<nav><nav>no</nav><article>yes</article>`,
			want:   []section{{"", "yes"}},
		},
		"text": {
			format: knowledge.Text,
			text:   "# no heading  \nline\n\n\n\n  second\x00 *p*\n",
			want:   []section{{"", "# no heading\nline\n\n  second  *p*"}},
		},
		"headings alone": {format: knowledge.Markdown, text: "# A\n## B\n", want: nil},
		"spaces alone":   {format: knowledge.Text, text: " \n\t\u2003\n", want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passages := knowledge.Cut(knowledge.Document{Title: "Shop", Format: test.format, Text: test.text})
			var got []section
			for _, p := range passages {
				got = append(got, section{p.Heading, p.Text})
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestCutFillsPassages(t *testing.T) {
	t.Parallel()
	d := knowledge.Document{
		ID:        "d",
		CompanyID: "c",
		Title:     "Shop",
		Address:   "https://shop.example",
		Format:    knowledge.Markdown,
		Text:      "## A\none\n## B\ntwo",
	}
	want := knowledge.Passage{
		DocumentID: "d",
		CompanyID:  "c",
		Number:     2,
		Title:      "Shop",
		Heading:    "B",
		Address:    "https://shop.example",
		Text:       "two",
	}
	passages := knowledge.Cut(d)
	if len(passages) != 2 || !reflect.DeepEqual(passages[1], want) {
		t.Errorf("got %+v, want the second to be %+v", passages, want)
	}
}

// TestCutLongSections checks where a section is cut: not in a paragraph, a sentence, a row or a word if there is
// another place, and never in a character.
func TestCutLongSections(t *testing.T) {
	t.Parallel()
	sentence := "The parcel, e.g. a book, arrives within three days. "
	for name, test := range map[string]struct {
		text string
		ends string // of each passage but the last
	}{
		"paragraphs": {strings.Repeat(strings.Repeat("word ", 60)+"end\n\n", 20), "end"},
		"sentences":  {strings.Repeat(sentence, 100), "days."},
		"rows":       {strings.Repeat("| a cell | another cell. Two | last |\n", 200), "last |"},
		"words":      {strings.Repeat("word ", 2000), "word"},
		"characters": {strings.Repeat("é", 4000), "é"},
		"Japanese":   {strings.Repeat("本を返品できます。", 300), "。"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passages := knowledge.Cut(knowledge.Document{Title: "Shop", Format: knowledge.Markdown, Text: test.text})
			if len(passages) < 2 {
				t.Fatalf("got %d passages, want several", len(passages))
			}
			for _, p := range passages[:len(passages)-1] {
				if !strings.HasSuffix(p.Text, test.ends) {
					t.Errorf("got a passage that ends with %q, want %q", p.Text[len(p.Text)-20:], test.ends)
				}
			}
			last := passages[len(passages)-1]
			if len(last.Text) < maxPassage/4 {
				t.Errorf("got a last passage of %d bytes, want no small rest", len(last.Text))
			}
			checkPassages(t, passages)
		})
	}
}

// TestCutIsLinear gives all readers texts that are slow to read with nested loops or recursion. The bound has room
// for a busy machine: they take some 50 ms each, and minutes if they are quadratic.
func TestCutIsLinear(t *testing.T) {
	t.Parallel()
	fill := func(s string) string { return strings.Repeat(s, knowledge.MaxText/len(s)) }
	var ticks strings.Builder
	for n := 1; ticks.Len()+n < knowledge.MaxText; n++ {
		ticks.WriteString(strings.Repeat("`", n) + "a")
	}
	texts := map[string]string{
		"marks":         fill("#"),
		"headings":      fill("# a\n"),
		"items":         fill("- a\n"),
		"fences":        fill("```\n"),
		"open fence":    "```\n" + fill("a b\n"),
		"one word":      fill("a"),
		"spaces":        fill(" "),
		"brackets":      fill("["),
		"targets":       fill("](("),
		"nested links":  fill("[")[:knowledge.MaxText/2] + fill("](http://a)")[:knowledge.MaxText/2],
		"backticks":     ticks.String(),
		"emphasis":      fill("*a **b _c "),
		"tags":          fill("<"),
		"lists":         fill("<ol><li>a"),
		"cells":         fill("<td>"),
		"navigation":    fill("<nav>"),
		"open comments": fill("<!--\n"),
		"entities":      fill("&"),
		"quotations":    fill("> "),
		"rows":          fill("| a | b |\n"),
		"accents":       "a" + fill("\u0301"),
		"capitals":      fill("aB"),
	}
	for name, text := range texts {
		for _, format := range []knowledge.Format{knowledge.Markdown, knowledge.HTML, knowledge.Text} {
			begin := time.Now()
			passages := knowledge.Cut(knowledge.Document{Title: "Shop", Format: format, Text: text})
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("cutting %s as %s took %v, want less than a second", name, format, took)
			}
			checkPassages(t, passages)
		}
	}
}

func checkPassages(t *testing.T, passages []knowledge.Passage) {
	t.Helper()
	for i, p := range passages {
		if p.Number != i+1 {
			t.Errorf("got number %d, want %d", p.Number, i+1)
		}
		if p.Text == "" || len(p.Text) > maxPassage || !utf8.ValidString(p.Text) || !utf8.ValidString(p.Heading) {
			t.Errorf("got a passage of %d bytes below %q: %q", len(p.Text), p.Heading, p.Text)
		}
	}
}

func FuzzCut(f *testing.F) {
	for _, text := range []string{
		"# A\n\nb `c` [d](e)\n\n- f\n", "<h1>A</h1><ul><li>b", "a\n===\n| b | c |\n|---|---|\n", "```\n# a", "\xff\x00&#0;",
		strings.Repeat("word. ", 600), strings.Repeat("é", 2000), "---\na: b\n---\n<!-- c -->",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range []knowledge.Format{knowledge.Markdown, knowledge.HTML, knowledge.Text} {
			passages := knowledge.Cut(knowledge.Document{Title: "Shop", Format: format, Text: text})
			checkPassages(t, passages)
		}
		checkNothingLost(t, text)
	})
}

// checkNothingLost checks that the passages of a plain text have its characters, once and in their order.
func checkNothingLost(t *testing.T, text string) {
	t.Helper()
	var got strings.Builder
	for _, p := range knowledge.Cut(knowledge.Document{Title: "Shop", Format: knowledge.Text, Text: text}) {
		got.WriteString(p.Text)
	}
	dropped := func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == '\uFEFF' || r == '\u00AD' {
			return -1
		}
		return r
	}
	want := strings.Map(dropped, strings.ToValidUTF8(text, "\uFFFD"))
	if got := strings.Map(dropped, got.String()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
