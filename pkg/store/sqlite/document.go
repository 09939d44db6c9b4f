package sqlite

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	storedColumns   = `id, company_id, title, address, format, bytes, passages, created_at, updated_at, revision`
	listedColumns   = storedColumns + `, ` + sourceColumns
	documentColumns = listedColumns + `, text`
)

const (
	oneDocument      = `SELECT ` + documentColumns + ` FROM documents WHERE id = ?`
	usageOfDocuments = `SELECT count(*), ifnull(sum(bytes), 0) FROM documents WHERE company_id = ?`
	listOfDocuments  = `SELECT ` + listedColumns + ` FROM documents WHERE company_id = ? AND id > ? ORDER BY id LIMIT ?`
)

// readListed reads a document without its text.
func readListed(r *row) knowledge.Document {
	return knowledge.Document{
		ID: r.text(), CompanyID: r.text(), Title: r.text(), Address: r.text(), Format: knowledge.Format(r.text()),
		Bytes: int(r.int()), Passages: int(r.int()), CreatedAt: r.time(), UpdatedAt: r.time(), Revision: r.int(),
		Source: readSource(r),
	}
}

func readDocument(r *row) knowledge.Document {
	d := readListed(r)
	d.Text = r.text()
	return d
}

// replaceDocument writes a document and its passages, in place of those that it had.
func replaceDocument(c *conn, d knowledge.Document, passages []indexed) error {
	_, err := c.insert(
		orReplace, `documents`, storedColumns+`, text`,
		d.ID, d.CompanyID, d.Title, d.Address, string(d.Format), d.Bytes, d.Passages,
		d.CreatedAt, d.UpdatedAt, d.Revision, d.Text,
	)
	if err != nil {
		return err
	}
	if err := replaceSource(c, d); err != nil {
		return err
	}
	if err := deletePassages(c, d.ID); err != nil {
		return err
	}
	for _, p := range passages {
		if err := insertPassage(c, p); err != nil {
			return err
		}
	}
	return nil
}

// copyDocument writes a document as another engine has it, and cuts it again.
func copyDocument(c *conn, d knowledge.Document) error {
	return replaceDocument(c, d, indexAll(knowledge.Cut(d)))
}

// Document implements [store.Documents].
func (s *Store) Document(ctx context.Context, id string) (knowledge.Document, error) {
	return one(ctx, s, "reading a document", oneDocument, readDocument, apperr.DocumentNotFound, id)
}

// PutDocument implements [store.Documents]. The terms are made before the transaction, for which other writes wait.
func (s *Store) PutDocument(ctx context.Context, d knowledge.Document, passages []knowledge.Passage) error {
	rows := indexAll(passages)
	current := d.Revision
	d.Revision++
	return update(ctx, s, "writing a document", func(c *conn) error {
		var stored int64
		_, err := c.first(`SELECT revision FROM documents WHERE id = ?`, func(r *row) { stored = r.int() }, d.ID)
		if err != nil {
			return err
		}
		if stored != current {
			return apperr.ChangedMeanwhile.New()
		}
		return replaceDocument(c, d, rows)
	})
}

// DeleteDocument implements [store.Documents].
func (s *Store) DeleteDocument(ctx context.Context, id string) error {
	return update(ctx, s, "deleting a document", func(c *conn) error {
		changed, err := c.exec(`DELETE FROM documents WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if changed == 0 {
			return apperr.DocumentNotFound.New()
		}
		if _, err := c.exec(deletedSource, id); err != nil {
			return err
		}
		return deletePassages(c, id)
	})
}

// Documents implements [store.Documents].
func (s *Store) Documents(ctx context.Context, companyID string, p store.Page) ([]knowledge.Document, error) {
	return all(ctx, s, "listing documents", listOfDocuments, readListed, companyID, p.After, p.Size())
}

// DocumentUsage implements [store.Documents].
func (s *Store) DocumentUsage(ctx context.Context, companyID string) (knowledge.Usage, error) {
	decode := func(r *row) knowledge.Usage { return knowledge.Usage{Documents: int(r.int()), Bytes: r.int()} }
	return one(ctx, s, "adding up documents", usageOfDocuments, decode, apperr.DocumentNotFound, companyID)
}
