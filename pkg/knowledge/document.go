// Package knowledge has the documents of companies, from which their bots answer.
//
// document.go has the documents and the passages, source.go the documents that are fetched from their addresses. cut.go
// cuts the first into the second; markdown.go, with inline.go, and html.go read their formats. terms.go, with stem.go, makes
// the words that are searched; embedding.go ranks by meaning. Package store keeps and searches them.
package knowledge

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/webhook"
)

const (
	// MaxText bounds the text of a document, in bytes: as JSON it fits into a request of 1 MiB.
	MaxText = 512 << 10
	// MaxDocuments and MaxTotal bound the documents of a company, and the bytes of all their texts.
	MaxDocuments = 1000
	MaxTotal     = 100 << 20
	maxTitle     = 200 // characters
)

// Format is how the text of a document is written.
type Format string

// The formats of documents.
const (
	Markdown Format = "markdown"
	HTML     Format = "html"
	Text     Format = "text"
)

// Document is a text that the bots of a company answer from.
type Document struct {
	ID        string    `json:"id"`
	CompanyID string    `json:"companyId"`
	Title     string    `json:"title"`
	Address   string    `json:"address,omitempty"` // where visitors can read it; empty: nowhere
	Format    Format    `json:"format"`
	Text      string    `json:"text,omitempty"`
	Source    Source    `json:"source,omitzero"`
	Bytes     int       `json:"bytes"`    // of the text; lists have no text
	Passages  int       `json:"passages"` // into which it is cut
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Revision  int64     `json:"revision"` // incremented by each update; 0: not stored
}

// Passage is a part of a document that a language model reads.
type Passage struct {
	DocumentID string
	CompanyID  string
	Number     int    // in its document, from 1 on
	Title      string // of the document
	Heading    string // the headings above it, such as "Orders › Returns"; empty: none
	Address    string // of the document
	Text       string
	Embedding  Embedding // zero: none yet
}

// Usage is what the documents of a company take.
type Usage struct {
	Documents int
	Bytes     int64
}

// Check returns Invalid for a document with invalid fields.
func (d Document) Check() error {
	var f apperr.Fields
	if strings.TrimSpace(d.Title) == "" || utf8.RuneCountInString(d.Title) > maxTitle || !printable(d.Title) {
		f.Add("title", "must have 1 to "+strconv.Itoa(maxTitle)+" characters, and no control characters")
	}
	if page, _, _ := strings.Cut(d.Address, "#"); d.Address != "" {
		webhook.CheckURL(&f, "address", page)
	}
	switch d.Format {
	case Markdown, HTML, Text:
	default:
		f.Add("format", "must be markdown, html or text")
	}
	d.checkSource(&f)
	isEmpty := strings.TrimSpace(d.Text) == "" && !d.Source.Fetched()
	if isEmpty || len(d.Text) > MaxText || !utf8.ValidString(d.Text) {
		f.Add("text", "must be text of 1 to "+strconv.Itoa(MaxText)+" bytes")
	}
	return f.Err()
}

func (d Document) checkSource(f *apperr.Fields) {
	hours := d.Source.RefreshHours
	if hours < 0 || hours > MaxRefreshHours {
		f.Add("refreshHours", "must be 0 to "+strconv.Itoa(MaxRefreshHours))
	}
	if hours > 0 && d.Address == "" {
		f.Add("address", "is where the text is fetched from")
	}
}

// Check returns TOO_MANY_DOCUMENTS if a company that uses this much has no room for a document in place of another one.
func (u Usage) Check(d, before Document) error {
	isNew := before.Revision == 0
	bytes := u.Bytes + int64(d.Bytes-before.Bytes)
	if isNew && u.Documents >= MaxDocuments || bytes > MaxTotal {
		return apperr.TooManyDocuments.New()
	}
	return nil
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
