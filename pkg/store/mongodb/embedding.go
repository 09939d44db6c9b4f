package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

// This file has the ranking by meaning: settings of companies, and embeddings of passages. An embedding is part of
// the document of its passage, so it goes with it.

// KnowledgeSettings implements [store.KnowledgeSettings].
func (s *Store) KnowledgeSettings(ctx context.Context, companyID string) (knowledge.Settings, error) {
	r, err := get[store.KnowledgeRecord](ctx, s, knowledgeSettings, companyID)
	if apperr.Is(err, apperr.NotFound) {
		return knowledge.Settings{CompanyID: companyID}, nil
	}
	return r.Knowledge(), err
}

// PutKnowledgeSettings implements [store.KnowledgeSettings].
func (s *Store) PutKnowledgeSettings(ctx context.Context, v knowledge.Settings) error {
	return s.putSetting(ctx, knowledgeSettings, store.KnowledgeRecordOf(v).SettingRecord)
}

// AllKnowledgeSettings implements [store.KnowledgeSettings].
func (s *Store) AllKnowledgeSettings(ctx context.Context, p store.Page) ([]knowledge.Settings, error) {
	return list(ctx, s, knowledgeSettings, byIDs(p),
		func(r store.KnowledgeRecord) (knowledge.Settings, bool) { return r.Knowledge(), true })
}

// ClaimEmbedding implements [store.KnowledgeSettings].
func (s *Store) ClaimEmbedding(
	ctx context.Context, companyID string, ended time.Time, w knowledge.Work,
) (bool, error) {
	notLater := bson.D{{Key: "$not", Value: bson.D{{Key: "$gt", Value: store.UTC(ended)}}}} // also none
	filter := append(byID(companyID), bson.E{Key: "claimedUntil", Value: notLater})
	return s.updateOne(ctx, knowledgeSettings, filter, bson.D{{Key: "$set", Value: bson.D{
		{Key: "claimedUntil", Value: store.UTC(w.Until)},
		{Key: "failures", Value: w.Failures},
		{Key: "failure", Value: w.Failure},
	}}})
}

// UnembeddedPassages implements [store.Documents].
func (s *Store) UnembeddedPassages(
	ctx context.Context, companyID, model string, limit int,
) ([]knowledge.Passage, error) {
	q := listQuery{
		filter: bson.D{
			{Key: "companyId", Value: companyID},
			{Key: "model", Value: bson.D{{Key: "$ne", Value: model}}},
		},
		fields: passageFields(),
		limit:  limit,
	}
	return list(ctx, s, passages, q, func(d passageDocument) (knowledge.Passage, bool) {
		p := d.passage()
		p.Embedding = knowledge.Embedding{}
		return p, true
	})
}

// PutEmbeddings implements [store.Documents]. It compares the text too: a document that was written meanwhile has other
// passages with the same numbers.
func (s *Store) PutEmbeddings(ctx context.Context, of []knowledge.Passage) error {
	if len(of) == 0 {
		return nil
	}
	changes := make([]mongo.WriteModel, len(of))
	for i, p := range of {
		filter := bson.D{
			{Key: "documentId", Value: p.DocumentID},
			{Key: "number", Value: p.Number},
			{Key: "title", Value: p.Title},
			{Key: "heading", Value: headingOf(p)},
			{Key: "text", Value: p.Text},
		}
		change := bson.D{{Key: "$set", Value: bson.D{
			{Key: "model", Value: p.Embedding.Model},
			{Key: "vector", Value: p.Embedding.Vector},
		}}}
		changes[i] = mongo.NewUpdateManyModel().SetFilter(filter).SetUpdate(change)
	}
	return s.do(ctx, "writing embeddings", func(ctx context.Context) error {
		_, err := s.in(passages).BulkWrite(ctx, changes, options.BulkWrite().SetOrdered(false))
		return err
	})
}

// headingOf returns the heading of a passage as a filter: an empty one is not stored.
func headingOf(p knowledge.Passage) any {
	if p.Heading == "" {
		return nil
	}
	return p.Heading
}

// EmbeddingProgress implements [store.Documents].
func (s *Store) EmbeddingProgress(
	ctx context.Context, companyID, model string,
) (found knowledge.Progress, err error) {
	ofCompany := bson.E{Key: "companyId", Value: companyID}
	found.Passages, err = s.countPassages(ctx, bson.D{ofCompany}, maxCounted)
	if err != nil {
		return found, err
	}
	found.Embedded, err = s.countPassages(ctx, bson.D{ofCompany, {Key: "model", Value: model}}, maxCounted)
	return found, err
}

// maxCounted is above the passages that a company can have.
const maxCounted = 1 << 20
