package admin

import (
	"cmp"
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

// documentFields omits the text.
func documentFields(d knowledge.Document) fields {
	return fields{
		"title": d.Title, "address": d.Address, "format": d.Format, "bytes": d.Bytes,
		"refreshHours": d.Source.RefreshHours,
	}
}

// DocumentContent is what a user writes of a document. One that is fetched needs an address only: its text and format
// are those of the answer, and so is its title if it has none.
type DocumentContent struct {
	Title        string           `json:"title"`
	Address      string           `json:"address"`
	Format       knowledge.Format `json:"format"`
	Text         string           `json:"text"`
	RefreshHours int              `json:"refreshHours"`
}

// set replaces the content of a document. One that is fetched keeps the text that it has until then.
func (c DocumentContent) set(d *knowledge.Document, now time.Time) {
	d.SetSource(c.Address, c.RefreshHours, now)
	d.Title = c.Title
	if !d.Source.Fetched() {
		d.Format, d.Text, d.Bytes = c.Format, c.Text, len(c.Text)
		return
	}
	d.Title = cmp.Or(c.Title, d.Title, knowledge.AddressTitle(c.Address))
	d.Format = cmp.Or(d.Format, knowledge.HTML)
}

// CreateDocument adds a document of a company, in which its bots search from then on. Errors: Invalid, NotFound (no such
// company), Conflict with the reason TOO_MANY_DOCUMENTS.
func (s *Service) CreateDocument(
	ctx context.Context, by Actor, companyID string, content DocumentContent,
) (knowledge.Document, error) {
	d := knowledge.Document{ID: chat.NewID(), CompanyID: companyID, CreatedAt: store.UTC(s.now())}
	if _, err := s.store.Company(ctx, companyID); err != nil {
		return d, err
	}
	content.set(&d, d.CreatedAt)
	if err := s.putDocument(ctx, &d, knowledge.Document{}); err != nil {
		return d, err
	}
	return d, s.auditDocument(ctx, by, d, change{action: "document.create", after: documentFields(d)})
}

// UpdateDocument replaces the content of a document that has the revision, or [AnyRevision]. Errors: those of
// CreateDocument; PRECONDITION_FAILED for another revision.
func (s *Service) UpdateDocument(
	ctx context.Context, by Actor, id string, revision int64, content DocumentContent,
) (d knowledge.Document, err error) {
	for range changeAttempts {
		d, err = s.store.Document(ctx, id)
		if err != nil {
			return d, err
		}
		if revision != AnyRevision && revision != d.Revision {
			return d, apperr.PreconditionFailed.WithMessage("Somebody else has changed the document meanwhile")
		}
		before := d
		content.set(&d, store.UTC(s.now()))
		err = s.putDocument(ctx, &d, before)
		if apperr.Is(err, apperr.Conflict) && apperr.ReasonOf(err) == apperr.ChangedMeanwhile.Reason {
			continue
		}
		if err != nil {
			return d, err
		}
		return d, s.auditDocument(ctx, by, d, change{
			action: "document.update", before: documentFields(before), after: documentFields(d),
			hidden: before.Text != d.Text,
		})
	}
	return d, err
}

// putDocument checks and writes a document in place of another one.
func (s *Service) putDocument(ctx context.Context, d *knowledge.Document, before knowledge.Document) error {
	if err := d.Check(); err != nil {
		return err
	}
	used, err := s.store.DocumentUsage(ctx, d.CompanyID)
	if err != nil {
		return err
	}
	if err := used.Check(*d, before); err != nil {
		return err
	}
	passages := knowledge.Cut(*d)
	d.Passages = len(passages)
	d.UpdatedAt = store.UTC(s.now())
	if err := s.store.PutDocument(ctx, *d, passages); err != nil {
		return err
	}
	d.Revision++
	return s.changedDocuments(ctx, d.CompanyID)
}

func (s *Service) auditDocument(ctx context.Context, by Actor, d knowledge.Document, c change) error {
	c.companyID, c.target, c.id = d.CompanyID, "document", d.ID
	return s.audit(ctx, by, c)
}

// FetchDocument makes the next fetch of a document due now. Errors: NotFound; Conflict with the reason
// DOCUMENT_NOT_FETCHED for one whose text is given by hand.
func (s *Service) FetchDocument(ctx context.Context, by Actor, id string) (d knowledge.Document, err error) {
	for range changeAttempts {
		d, err = s.store.Document(ctx, id)
		if err != nil {
			return d, err
		}
		if !d.Source.Fetched() {
			return d, apperr.DocumentNotFetched.New()
		}
		d.Source.DueAt = store.UTC(s.now())
		err = s.store.PutDocumentSource(ctx, d.ID, d.Revision, d.Source)
		if apperr.ReasonOf(err) == apperr.ChangedMeanwhile.Reason {
			continue
		}
		if err != nil {
			return d, err
		}
		return d, s.auditDocument(ctx, by, d, change{action: "document.fetch"})
	}
	return d, err
}

// DeleteDocument removes a document. NotFound if it does not exist.
func (s *Service) DeleteDocument(ctx context.Context, by Actor, id string) error {
	d, err := s.store.Document(ctx, id)
	if err != nil {
		return err
	}
	if err := s.store.DeleteDocument(ctx, id); err != nil {
		return err
	}
	return s.auditDocument(ctx, by, d, change{action: "document.delete", before: documentFields(d)})
}
