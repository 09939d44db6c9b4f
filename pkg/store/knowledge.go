package store

import (
	"context"

	"github.com/parley-chat/parley/pkg/knowledge"
)

// Documents stores the documents of companies, and searches their passages.
type Documents interface {
	// Document returns a document, or NotFound with the reason DOCUMENT_NOT_FOUND.
	Document(ctx context.Context, id string) (knowledge.Document, error)
	// PutDocument writes a document and its passages, in place of those that it had, if its revision is the stored one, 0
	// for a new one, and increments the revision. Conflict with the reason CHANGED_MEANWHILE if it is another. A search
	// finds the passages of one of them, and none of a write that was not completed; a repeat completes it.
	PutDocument(ctx context.Context, d knowledge.Document, passages []knowledge.Passage) error
	// DeleteDocument removes a document and its passages, or returns NotFound.
	DeleteDocument(ctx context.Context, id string) error
	// Documents lists the documents of a company without their texts, ordered by id.
	Documents(ctx context.Context, companyID string, p Page) ([]knowledge.Document, error)
	// DocumentUsage adds up the documents of a company.
	DocumentUsage(ctx context.Context, companyID string) (knowledge.Usage, error)
	// SearchPassages returns the passages of a company that fit terms ([knowledge.Terms]) best, best first. One term is
	// enough to be found; rarer ones, and those of headings, count more.
	SearchPassages(ctx context.Context, companyID string, terms []string, limit int) ([]knowledge.Passage, error)
}
