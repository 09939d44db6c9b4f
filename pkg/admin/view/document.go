package view

import (
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
)

// Document is a document of a company. Those of a list have no text.
type Document struct {
	ID        string           `json:"id"`
	CompanyID string           `json:"companyId"`
	Title     string           `json:"title"`
	Address   string           `json:"address,omitempty"`
	Format    knowledge.Format `json:"format"`
	Text      string           `json:"text,omitempty"`
	Bytes     int              `json:"bytes"`
	Passages  int              `json:"passages"`
	CreatedAt chat.Time        `json:"createdAt"`
	UpdatedAt chat.Time        `json:"updatedAt"`
	Revision  int64            `json:"revision"`

	RefreshHours int            `json:"refreshHours"`    // 0: the text is given by hand
	Fetch        *DocumentFetch `json:"fetch,omitempty"` // nil: the text is given by hand
}

// DocumentFetch is the state of a document that is fetched from its address.
type DocumentFetch struct {
	NextAt    chat.Time        `json:"nextAt"`
	FetchedAt *chat.Time       `json:"fetchedAt,omitempty"` // nil: never
	Failure   *DocumentFailure `json:"failure,omitempty"`   // of the last fetch; nil: none
}

// DocumentFailure says why a fetch got no text.
type DocumentFailure struct {
	Code    string    `json:"code"`
	Message string    `json:"message"`
	At      chat.Time `json:"at"`
}

// DocumentOf returns the view of a document.
func DocumentOf(d knowledge.Document) Document {
	return Document{
		ID: d.ID, CompanyID: d.CompanyID, Title: d.Title, Address: d.Address, Format: d.Format, Text: d.Text,
		Bytes: d.Bytes, Passages: d.Passages, Revision: d.Revision,
		CreatedAt: chat.Time(d.CreatedAt), UpdatedAt: chat.Time(d.UpdatedAt),
		RefreshHours: d.Source.RefreshHours, Fetch: fetchOf(d.Source),
	}
}

func fetchOf(s knowledge.Source) *DocumentFetch {
	if !s.Fetched() {
		return nil
	}
	fetch := &DocumentFetch{NextAt: chat.Time(s.DueAt)}
	if !s.FetchedAt.IsZero() {
		at := chat.Time(s.FetchedAt)
		fetch.FetchedAt = &at
	}
	if f := s.Failure; f.Code != "" {
		fetch.Failure = &DocumentFailure{Code: f.Code, Message: f.Message, At: chat.Time(f.At)}
	}
	return fetch
}

// Passages are what a search has found, best first.
type Passages struct {
	Passages []Passage `json:"passages"`
}

// Passage is a part of a document.
type Passage struct {
	DocumentID string `json:"documentId"`
	Title      string `json:"title"`
	Heading    string `json:"heading"`
	Address    string `json:"address,omitempty"`
	Text       string `json:"text"`
}

// PassagesOf returns the view of passages.
func PassagesOf(found []knowledge.Passage) Passages {
	return Passages{ListOf(found, func(p knowledge.Passage) Passage {
		return Passage{DocumentID: p.DocumentID, Title: p.Title, Heading: p.Heading, Address: p.Address, Text: p.Text}
	})}
}
