package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

// This file has the queue of the documents whose text is fetched: those with a source.dueAt.

// sourceDocument is a [knowledge.Source].
type sourceDocument struct {
	RefreshHours int       `bson:"refreshHours"`
	DueAt        time.Time `bson:"dueAt"`
	FetchedAt    time.Time `bson:"fetchedAt,omitempty"`
	FailureCode  string    `bson:"failureCode,omitempty"`
	FailureText  string    `bson:"failureText,omitempty"`
	FailedAt     time.Time `bson:"failedAt,omitempty"`
	Failures     int       `bson:"failures,omitempty"`
	ETag         string    `bson:"etag,omitempty"`
	Modified     string    `bson:"modified,omitempty"`
}

func sourceDocumentOf(s knowledge.Source) *sourceDocument {
	if !s.Fetched() {
		return nil
	}
	return &sourceDocument{
		RefreshHours: s.RefreshHours, DueAt: store.UTC(s.DueAt), FetchedAt: store.UTC(s.FetchedAt),
		FailureCode: s.Failure.Code, FailureText: s.Failure.Message, FailedAt: store.UTC(s.Failure.At),
		Failures: s.Failures, ETag: s.ETag, Modified: s.Modified,
	}
}

func (d *sourceDocument) source() knowledge.Source {
	if d == nil {
		return knowledge.Source{}
	}
	failure := knowledge.FetchFailure{Code: d.FailureCode, Message: d.FailureText, At: store.UTC(d.FailedAt)}
	return knowledge.Source{
		RefreshHours: d.RefreshHours, DueAt: store.UTC(d.DueAt), FetchedAt: store.UTC(d.FetchedAt),
		Failure: failure, Failures: d.Failures, ETag: d.ETag, Modified: d.Modified,
	}
}

// dueBefore restricts a filter to documents that are due at now.
func dueBefore(filter bson.D, now time.Time) bson.D {
	return append(filter, bson.E{Key: "source.dueAt", Value: bson.D{{Key: "$lte", Value: store.UTC(now)}}})
}

// DueDocuments implements [store.DocumentFetches].
func (s *Store) DueDocuments(
	ctx context.Context, now time.Time, except []string, limit int,
) ([]knowledge.Due, error) {
	q := listQuery{
		filter: dueBefore(bson.D{}, now),
		sort:   bson.D{asc("source.dueAt")},
		fields: fieldsOf("companyId"),
		limit:  limit,
	}
	if len(except) > 0 {
		others := bson.D{{Key: "companyId", Value: bson.D{{Key: "$in", Value: except}}}}
		q.filter = append(q.filter, bson.E{Key: "$nor", Value: bson.A{others}})
	}
	return list(ctx, s, knowledgeDocuments, q, func(d knowledgeDocument) (knowledge.Due, bool) {
		return knowledge.Due{ID: d.ID, CompanyID: d.CompanyID}, true
	})
}

// ClaimDocument implements [store.DocumentFetches].
func (s *Store) ClaimDocument(
	ctx context.Context, id string, now, until time.Time,
) (knowledge.Document, bool, error) {
	postponed := bson.D{{Key: "$set", Value: bson.D{{Key: "source.dueAt", Value: store.UTC(until)}}}}
	d, err := modify[knowledgeDocument](ctx, s, knowledgeDocuments, dueBefore(byID(id), now), postponed)
	if apperr.Is(err, apperr.NotFound) {
		return knowledge.Document{}, false, nil
	}
	return d.document(), err == nil, err
}

// PutDocumentSource implements [store.DocumentFetches].
func (s *Store) PutDocumentSource(ctx context.Context, id string, revision int64, source knowledge.Source) error {
	current := append(byID(id), bson.E{Key: "revision", Value: revision})
	changed := bson.D{{Key: "$set", Value: bson.D{{Key: "source", Value: sourceDocumentOf(source)}}}}
	found, err := s.updateOne(ctx, knowledgeDocuments, current, changed)
	if err == nil && !found {
		err = apperr.ChangedMeanwhile.New()
	}
	return err
}
