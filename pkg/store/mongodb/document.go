package mongodb

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

// A document and its passages are several documents of MongoDB, written in this order: the new passages, the document
// if its revision is still the stored one, and then the removal of all other passages up to this revision. Each write
// has its own version, by which the passages of two concurrent ones are told apart. Passages of a later revision are
// those of a write that has begun since.

// knowledgeDocument is a [knowledge.Document].
type knowledgeDocument struct {
	ID        string    `bson:"_id"`
	CompanyID string    `bson:"companyId"`
	Title     string    `bson:"title"`
	Address   string    `bson:"address,omitempty"`
	Format    string    `bson:"format"`
	Text      string    `bson:"text"`
	Size      int64     `bson:"size"` // of the text, in bytes
	Passages  int       `bson:"passages"`
	CreatedAt time.Time `bson:"createdAt"`
	UpdatedAt time.Time `bson:"updatedAt"`
	Revision  int64     `bson:"revision"`
	Version   string    `bson:"version"` // of its passages

	Source *sourceDocument `bson:"source,omitempty"` // nil: the text is given by hand
}

func (d knowledgeDocument) document() knowledge.Document {
	return knowledge.Document{
		ID: d.ID, CompanyID: d.CompanyID, Title: d.Title, Address: d.Address, Format: knowledge.Format(d.Format),
		Text: d.Text, Bytes: int(d.Size), Passages: d.Passages, Revision: d.Revision,
		CreatedAt: store.UTC(d.CreatedAt), UpdatedAt: store.UTC(d.UpdatedAt), Source: d.Source.source(),
	}
}

func knowledgeDocumentOf(d knowledge.Document) knowledgeDocument {
	return knowledgeDocument{
		ID: d.ID, CompanyID: d.CompanyID, Title: d.Title, Address: d.Address, Format: string(d.Format),
		Text: d.Text, Size: int64(d.Bytes), Passages: d.Passages, Revision: d.Revision,
		CreatedAt: store.UTC(d.CreatedAt), UpdatedAt: store.UTC(d.UpdatedAt), Version: uuid.NewString(),
		Source: sourceDocumentOf(d.Source),
	}
}

// Document implements [store.Documents].
func (s *Store) Document(ctx context.Context, id string) (knowledge.Document, error) {
	d, err := get[knowledgeDocument](ctx, s, knowledgeDocuments, id)
	return d.document(), err
}

// PutDocument implements [store.Documents].
func (s *Store) PutDocument(ctx context.Context, d knowledge.Document, cut []knowledge.Passage) error {
	current := d.Revision
	d.Revision++
	written := knowledgeDocumentOf(d)
	if err := s.insertPassages(ctx, written, cut); err != nil {
		return err
	}
	err := s.putRevision(ctx, written, current)
	if apperr.Is(err, apperr.Conflict) {
		return s.afterConflict(ctx, written, err)
	}
	if err != nil {
		return err
	}
	return s.deleteOldPassages(ctx, written)
}

// putRevision writes a document if the stored one has a revision, 0 for a new one.
func (s *Store) putRevision(ctx context.Context, d knowledgeDocument, current int64) error {
	if current > 0 {
		err := s.replaceRevision(ctx, knowledgeDocuments, d.ID, current, d)
		if apperr.Is(err, apperr.NotFound) {
			err = apperr.ChangedMeanwhile.Wrap(err)
		}
		return err
	}
	inserted, err := s.insert(ctx, knowledgeDocuments, d)
	if err == nil && !inserted {
		err = apperr.ChangedMeanwhile.New()
	}
	return err
}

// afterConflict removes the passages of a write that came too late, and those that the write before it may have left
// when it crashed. It returns the conflict.
func (s *Store) afterConflict(ctx context.Context, lost knowledgeDocument, conflict error) error {
	ofVersion := bson.D{{Key: "documentId", Value: lost.ID}, {Key: "version", Value: lost.Version}}
	if _, err := s.deleteAll(ctx, passages, ofVersion); err != nil {
		return err
	}
	stored, err := findOne[knowledgeDocument](ctx, s, knowledgeDocuments, byID(lost.ID), "revision", "version")
	if apperr.Is(err, apperr.NotFound) {
		return conflict
	}
	if err == nil {
		err = s.deleteOldPassages(ctx, stored)
	}
	if err != nil {
		return err
	}
	return conflict
}

// deleteOldPassages removes the passages that a document had before.
func (s *Store) deleteOldPassages(ctx context.Context, d knowledgeDocument) error {
	_, err := s.deleteAll(ctx, passages, bson.D{
		{Key: "documentId", Value: d.ID},
		{Key: "revision", Value: bson.D{{Key: "$lte", Value: d.Revision}}},
		{Key: "$nor", Value: bson.A{bson.D{{Key: "version", Value: d.Version}}}},
	})
	return err
}

// DeleteDocument implements [store.Documents]. It removes passages also if there is no document, so that a repeat
// completes it.
func (s *Store) DeleteDocument(ctx context.Context, id string) error {
	n, err := s.deleteAll(ctx, knowledgeDocuments, byID(id))
	if err != nil {
		return err
	}
	if _, err := s.deleteAll(ctx, passages, bson.D{{Key: "documentId", Value: id}}); err != nil {
		return err
	}
	if n == 0 {
		return apperr.DocumentNotFound.New()
	}
	return nil
}

// Documents implements [store.Documents].
func (s *Store) Documents(ctx context.Context, companyID string, p store.Page) ([]knowledge.Document, error) {
	q := byIDs(p)
	q.filter = append(bson.D{{Key: "companyId", Value: companyID}}, q.filter...)
	q.fields = bson.D{{Key: "text", Value: 0}}
	return list(ctx, s, knowledgeDocuments, q,
		func(d knowledgeDocument) (knowledge.Document, bool) { return d.document(), true })
}

// DocumentUsage implements [store.Documents]. It reads an index and no documents.
func (s *Store) DocumentUsage(ctx context.Context, companyID string) (knowledge.Usage, error) {
	usage, err := s.sumSizes(ctx, knowledgeDocuments, bson.D{{Key: "companyId", Value: companyID}})
	return knowledge.Usage{Documents: int(usage.Count), Bytes: usage.Bytes}, err
}

// writeCut cuts documents of another engine, and writes their passages.
func writeCut(ctx context.Context, s *Store, copied []knowledgeDocument) error {
	for _, d := range copied {
		if err := s.insertPassages(ctx, d, knowledge.Cut(d.document())); err != nil {
			return err
		}
	}
	return nil
}

// deleteCutBefore removes the passages that documents had before they were copied, of any revision.
func deleteCutBefore(ctx context.Context, s *Store, copied []knowledgeDocument) error {
	for _, d := range copied {
		_, err := s.deleteAll(ctx, passages, bson.D{
			{Key: "documentId", Value: d.ID},
			{Key: "$nor", Value: bson.A{bson.D{{Key: "version", Value: d.Version}}}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// insertPassages adds the passages of a write.
func (s *Store) insertPassages(ctx context.Context, d knowledgeDocument, cut []knowledge.Passage) error {
	for some := range slices.Chunk(cut, writeBatch) {
		batch := make([]any, len(some))
		for i, p := range some {
			batch[i] = passageDocumentOf(d, p)
		}
		if _, err := s.insertAll(ctx, passages, batch); err != nil {
			return err
		}
	}
	return nil
}
