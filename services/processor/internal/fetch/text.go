package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/pdf"
)

// accepted are the types that Parley reads.
const accepted = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, application/pdf;q=0.8"

const pdfType = "application/pdf"

// page is the text of an answer.
type page struct {
	format knowledge.Format
	title  string // of HTML; empty: none
	text   string
}

// kind is how a type of content is read.
type kind struct {
	format      knowledge.Format
	contentType string // with the charset
	maxBytes    int
	isPDF       bool
}

// kindOf returns how an answer is read. A plain text whose address ends as that of Markdown is Markdown, because many
// servers know no type for it.
func kindOf(h http.Header, address *url.URL) (kind, error) {
	contentType := h.Get("Content-Type")
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return kind{}, fail(knowledge.FetchType, "The server does not say what type of content it has")
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return kind{}, fail(knowledge.FetchType, "The server sent compressed content, which was not asked for")
	}
	k := kind{contentType: contentType, maxBytes: knowledge.MaxText}
	switch media {
	case "text/html", "application/xhtml+xml":
		k.format = knowledge.HTML
	case "text/markdown", "text/x-markdown":
		k.format = knowledge.Markdown
	case "text/plain":
		k.format = knowledge.Text
		if extension := strings.ToLower(path.Ext(address.Path)); extension == ".md" || extension == ".markdown" {
			k.format = knowledge.Markdown
		}
	case pdfType:
		k.format, k.maxBytes, k.isPDF = knowledge.Markdown, pdf.MaxBytes, true
	default:
		message := fmt.Sprintf("The server sent %.100s; Parley reads HTML, Markdown, plain text and PDF", media)
		return kind{}, fail(knowledge.FetchType, message)
	}
	return k, nil
}

// page reads a body of at most one byte more than the maximum. Its error is a *failure, unless ctx is done.
func (k kind) page(ctx context.Context, body []byte) (page, error) {
	if k.isPDF {
		return pdfPage(ctx, body)
	}
	if len(body) > k.maxBytes {
		return page{}, tooLarge(k.maxBytes)
	}
	text := decode(body, k.contentType)
	if len(text) > knowledge.MaxText {
		return page{}, tooLarge(knowledge.MaxText)
	}
	p := page{format: k.format, text: text}
	if k.format == knowledge.HTML {
		p.title = knowledge.CleanTitle(titleOf(text))
	}
	if len(knowledge.Cut(knowledge.Document{Format: p.format, Text: p.text})) == 0 {
		return page{}, fail(knowledge.FetchEmpty, "The page has no text; Parley runs no scripts")
	}
	return p, nil
}

// pdfFailures are the reasons of package pdf as codes of a fetch. Others are [knowledge.FetchType].
var pdfFailures = map[string]string{
	apperr.PDFTooLarge.Reason:    knowledge.FetchTooLarge,
	apperr.PDFTooSlow.Reason:     knowledge.FetchTooLarge,
	apperr.PDFWithoutText.Reason: knowledge.FetchEmpty,
}

// pdfPage reads a body of PDF. Its error is a *failure, unless ctx is done.
func pdfPage(ctx context.Context, body []byte) (page, error) {
	text, err := pdf.Text(ctx, body)
	invalid, ok := errors.AsType[*apperr.Error](err)
	if ok {
		code := cmp.Or(pdfFailures[invalid.Reason], knowledge.FetchType)
		return page{}, fail(code, invalid.Message)
	}
	return page{format: knowledge.Markdown, text: text}, err
}

func tooLarge(bytes int) *failure {
	return fail(knowledge.FetchTooLarge, fmt.Sprintf("The text is larger than %d KiB", bytes>>10))
}

// decode returns a text in UTF-8: from the charset of the type, of a byte order mark, of the HTML, or by its looks.
func decode(body []byte, contentType string) string {
	encoding, _, _ := charset.DetermineEncoding(body, contentType)
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		text = body
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(text), "\uFFFD"), "\uFEFF")
}

// titleOf returns the title of an HTML page, or nothing.
func titleOf(text string) string {
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken:
			name, _ := z.TagName()
			switch atom.Lookup(name) {
			case atom.Body:
				return ""
			case atom.Title:
				if z.Next() == html.TextToken {
					return html.UnescapeString(string(z.Text()))
				}
				return ""
			}
		}
	}
}
