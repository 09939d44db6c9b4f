package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
)

// This file has the table document_sources: the documents whose text is fetched, and the queue of their fetches.

// sourceColumns reads the source of each document of a query of documents.
const sourceColumns = `(SELECT due_at FROM document_sources WHERE document_id = documents.id),
	(SELECT source FROM document_sources WHERE document_id = documents.id)`

const (
	dueDocuments = `SELECT document_id, company_id FROM document_sources
	WHERE due_at <= ? AND company_id NOT IN (SELECT value FROM json_each(?)) ORDER BY due_at LIMIT ?`
	claimedSource = `UPDATE document_sources SET due_at = ?3 WHERE document_id = ?1 AND due_at <= ?2`
	deletedSource = `DELETE FROM document_sources WHERE document_id = ?`
)

func readSource(r *row) (s knowledge.Source) {
	due := r.time()
	if text := r.text(); text != "" {
		_ = json.Unmarshal([]byte(text), &s) // as replaceSource has written it
	}
	s.DueAt = due
	return s
}

// replaceSource writes the source of a document, or removes it if the text is given by hand.
func replaceSource(c *conn, d knowledge.Document) error {
	if !d.Source.Fetched() {
		_, err := c.exec(deletedSource, d.ID)
		return err
	}
	text, err := json.Marshal(d.Source)
	if err != nil {
		return err
	}
	_, err = c.insert(
		orReplace, `document_sources`, `document_id, company_id, due_at, source`,
		d.ID, d.CompanyID, d.Source.DueAt, string(text),
	)
	return err
}

// DueDocuments implements [store.DocumentFetches].
func (s *Store) DueDocuments(
	ctx context.Context, now time.Time, except []string, limit int,
) ([]knowledge.Due, error) {
	excluded, err := json.Marshal(append([]string{}, except...))
	if err != nil {
		return nil, err
	}
	return all(ctx, s, "listing due documents", dueDocuments,
		func(r *row) knowledge.Due { return knowledge.Due{ID: r.text(), CompanyID: r.text()} }, now, excluded, limit)
}

// claimedDocument is the result of ClaimDocument.
type claimedDocument struct {
	document knowledge.Document
	claimed  bool
}

// ClaimDocument implements [store.DocumentFetches].
func (s *Store) ClaimDocument(
	ctx context.Context, id string, now, until time.Time,
) (knowledge.Document, bool, error) {
	result, err := write(ctx, s, "claiming a document", func(c *conn) (result claimedDocument, err error) {
		changed, err := c.exec(claimedSource, id, now, until)
		if err != nil || changed == 0 {
			return result, err
		}
		result.claimed, err = c.first(oneDocument, func(r *row) { result.document = readDocument(r) }, id)
		return result, err
	})
	return result.document, result.claimed, err
}

// PutDocumentSource implements [store.DocumentFetches].
func (s *Store) PutDocumentSource(ctx context.Context, id string, revision int64, source knowledge.Source) error {
	const query = `SELECT id, company_id FROM documents WHERE id = ? AND revision = ?`
	return update(ctx, s, "writing the source of a document", func(c *conn) error {
		d := knowledge.Document{Source: source}
		found, err := c.first(query, func(r *row) { d.ID, d.CompanyID = r.text(), r.text() }, id, revision)
		if err != nil {
			return err
		}
		if !found {
			return apperr.ChangedMeanwhile.New()
		}
		return replaceSource(c, d)
	})
}
