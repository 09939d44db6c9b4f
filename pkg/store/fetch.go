package store

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/knowledge"
)

// DocumentFetches is the queue of the documents whose text is fetched from their address. [Documents] writes and reads
// them: a document with a schedule is due at its source's time.
type DocumentFetches interface {
	// DueDocuments lists at most limit documents that are due at now, longest due first, without those of the companies
	// in except.
	DueDocuments(ctx context.Context, now time.Time, except []string, limit int) ([]knowledge.Due, error)
	// ClaimDocument postpones the fetch of a document that is due at now to until, and returns the document. Of several
	// concurrent claims, one succeeds. If its process is killed, the document is due again at until.
	ClaimDocument(ctx context.Context, id string, now, until time.Time) (d knowledge.Document, claimed bool, err error)
	// PutDocumentSource writes the source of a document that has the revision, and neither increments that nor writes
	// passages. Conflict with the reason CHANGED_MEANWHILE if it has another one, or does not exist.
	PutDocumentSource(ctx context.Context, id string, revision int64, s knowledge.Source) error
}
