package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

// This file has the ranking by meaning: settings of companies, and embeddings of passages. An embedding is part of
// the row of its passage, so it goes with it.

const knowledgeColumns = settingColumns + `, claimed_until, failures, failure`

const (
	// unembedded has both sides of the model, since a search in an index knows no "other than".
	unembedded = `SELECT ` + passageColumns + ` FROM passages
	WHERE company_id = ?1 AND model < ?2 OR company_id = ?1 AND model > ?2 LIMIT ?3`
	embeddingProgress = `SELECT count(*), ifnull(sum(model = ?2), 0) FROM passages WHERE company_id = ?1`
	// putEmbedding compares the text too: a document that was written meanwhile has other passages with the same numbers.
	putEmbedding = `UPDATE passages SET model = ?, vector = ?
	WHERE document_id = ? AND number = ? AND title = ? AND heading = ? AND text = ?`
)

func readKnowledge(r *row) knowledge.Settings {
	return store.KnowledgeRecord{
		SettingRecord: readSetting(r), ClaimedUntil: r.time(), Failures: int(r.int()), Failure: r.text(),
	}.Knowledge()
}

func replaceKnowledge(c *conn, s knowledge.Settings) error {
	return replaceSetting(c, `knowledge_settings`, store.KnowledgeRecordOf(s).SettingRecord)
}

// KnowledgeSettings implements [store.KnowledgeSettings].
func (s *Store) KnowledgeSettings(ctx context.Context, companyID string) (knowledge.Settings, error) {
	return read(ctx, s, "reading settings of documents", func(c *conn) (knowledge.Settings, error) {
		found := knowledge.Settings{CompanyID: companyID}
		const query = `SELECT ` + knowledgeColumns + ` FROM knowledge_settings WHERE id = ?`
		_, err := c.first(query, func(r *row) { found = readKnowledge(r) }, companyID)
		return found, err
	})
}

// PutKnowledgeSettings implements [store.KnowledgeSettings].
func (s *Store) PutKnowledgeSettings(ctx context.Context, v knowledge.Settings) error {
	record := store.KnowledgeRecordOf(v).SettingRecord
	return putSetting(ctx, s, "writing settings of documents", `knowledge_settings`, record)
}

// AllKnowledgeSettings implements [store.KnowledgeSettings].
func (s *Store) AllKnowledgeSettings(ctx context.Context, p store.Page) ([]knowledge.Settings, error) {
	const query = `SELECT ` + knowledgeColumns + ` FROM knowledge_settings WHERE id > ? ORDER BY id LIMIT ?`
	return all(ctx, s, "listing settings of documents", query, readKnowledge, p.After, p.Size())
}

// ClaimEmbedding implements [store.KnowledgeSettings].
func (s *Store) ClaimEmbedding(
	ctx context.Context, companyID string, ended time.Time, w knowledge.Work,
) (bool, error) {
	return write(ctx, s, "claiming the embeddings of a company", func(c *conn) (bool, error) {
		changed, err := c.exec(
			`UPDATE knowledge_settings SET claimed_until = ?, failures = ?, failure = ?
			WHERE id = ? AND ifnull(claimed_until, 0) <= ?`,
			w.Until, w.Failures, w.Failure, companyID, milliseconds(ended),
		)
		return changed > 0, err
	})
}

// UnembeddedPassages implements [store.Documents].
func (s *Store) UnembeddedPassages(
	ctx context.Context, companyID, model string, limit int,
) ([]knowledge.Passage, error) {
	return all(ctx, s, "finding passages without embeddings", unembedded, readPassage, companyID, model, limit)
}

// PutEmbeddings implements [store.Documents].
func (s *Store) PutEmbeddings(ctx context.Context, passages []knowledge.Passage) error {
	return update(ctx, s, "writing embeddings", func(c *conn) error {
		for _, p := range passages {
			_, err := c.exec(
				putEmbedding,
				p.Embedding.Model, blob(p.Embedding.Vector), p.DocumentID, p.Number, p.Title, p.Heading, p.Text,
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// EmbeddingProgress implements [store.Documents].
func (s *Store) EmbeddingProgress(ctx context.Context, companyID, model string) (knowledge.Progress, error) {
	return read(ctx, s, "counting embeddings", func(c *conn) (found knowledge.Progress, err error) {
		_, err = c.first(embeddingProgress, func(r *row) {
			found = knowledge.Progress{Passages: int(r.int()), Embedded: int(r.int())}
		}, companyID, model)
		return found, err
	})
}
