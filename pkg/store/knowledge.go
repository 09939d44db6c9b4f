package store

import (
	"context"
	"time"

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
	// enough to be found; rarer ones, and those of headings, count more. The passages have their embeddings.
	SearchPassages(ctx context.Context, companyID string, terms []string, limit int) ([]knowledge.Passage, error)

	// UnembeddedPassages returns passages of a company that have no embedding of a model, at most limit.
	UnembeddedPassages(ctx context.Context, companyID, model string, limit int) ([]knowledge.Passage, error)
	// PutEmbeddings writes the embeddings of passages. Those of passages that were changed or removed meanwhile are
	// ignored.
	PutEmbeddings(ctx context.Context, passages []knowledge.Passage) error
	// EmbeddingProgress counts the passages of a company, and those with embeddings of a model.
	EmbeddingProgress(ctx context.Context, companyID, model string) (knowledge.Progress, error)
}

// KnowledgeSettings stores how the documents of companies are searched.
type KnowledgeSettings interface {
	// KnowledgeSettings returns the settings of a company, those without a connection if they were never changed.
	KnowledgeSettings(ctx context.Context, companyID string) (knowledge.Settings, error)
	// PutKnowledgeSettings writes settings as [Bots.PutBot] does, and begins the work anew. The caller invalidates
	// [CachedKnowledge].
	PutKnowledgeSettings(ctx context.Context, s knowledge.Settings) error
	// AllKnowledgeSettings lists the settings of all companies, ordered by company.
	AllKnowledgeSettings(ctx context.Context, p Page) ([]knowledge.Settings, error)
	// ClaimEmbedding replaces the state of a company's work, and reports whether it did: only if the stored one ends at or
	// before ended. Of several concurrent callers one claims it. The holder renews and ends its own with the time until
	// which it has it; a change of the settings takes it away.
	ClaimEmbedding(ctx context.Context, companyID string, ended time.Time, w knowledge.Work) (bool, error)
}

// KnowledgeRecord is a [knowledge.Settings] as engines store it.
type KnowledgeRecord struct {
	SettingRecord `bson:",inline"`

	ClaimedUntil time.Time `bson:"claimedUntil,omitempty"`
	Failures     int       `bson:"failures,omitempty"`
	Failure      string    `bson:"failure,omitempty"`
}

// KnowledgeRecordOf returns the record of settings whose work begins anew.
func KnowledgeRecordOf(s knowledge.Settings) KnowledgeRecord {
	return KnowledgeRecord{SettingRecord: settingRecord(s.CompanyID, s.CompanyID, s.Revision, s)}
}

// Knowledge returns the settings of a record.
func (r KnowledgeRecord) Knowledge() knowledge.Settings {
	s := settingsOf[knowledge.Settings](r.SettingRecord)
	s.CompanyID, s.Revision = r.CompanyID, r.Revision
	s.Work = knowledge.Work{Until: UTC(r.ClaimedUntil), Failures: r.Failures, Failure: r.Failure}
	return s
}
