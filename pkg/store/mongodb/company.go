package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

type companyDocument struct {
	ID               string `bson:"_id"`
	Name             string `bson:"name"`
	WebhookRetention int64  `bson:"webhookRetention,omitempty"` // seconds
}

func (d companyDocument) company() chat.Company {
	return chat.Company{ID: d.ID, Name: d.Name, WebhookRetention: time.Duration(d.WebhookRetention) * time.Second}
}

func companyDocumentOf(c chat.Company) companyDocument {
	return companyDocument{ID: c.ID, Name: c.Name, WebhookRetention: int64(c.WebhookRetention / time.Second)}
}

// Company implements [store.Companies].
func (s *Store) Company(ctx context.Context, id string) (chat.Company, error) {
	d, err := get[companyDocument](ctx, s, companies, id)
	return d.company(), err
}

// PutCompany implements [store.Companies].
func (s *Store) PutCompany(ctx context.Context, c chat.Company) error {
	return s.put(ctx, companies, c.ID, companyDocumentOf(c))
}

// Companies implements [store.Companies].
func (s *Store) Companies(ctx context.Context, p store.Page) ([]chat.Company, error) {
	return list(ctx, s, companies, byIDs(p), func(d companyDocument) (chat.Company, bool) { return d.company(), true })
}

type templateDocument struct {
	ID         string                      `bson:"_id"`
	CompanyID  string                      `bson:"companyId"`
	Name       string                      `bson:"name"`
	Status     string                      `bson:"status"`
	Text       string                      `bson:"text"`
	Parameters []templateParameterDocument `bson:"parameters,omitempty"`
}

type templateParameterDocument struct {
	Name    string `bson:"name"`
	Default string `bson:"default"`
}

func (d templateDocument) template() chat.MessageTemplate {
	t := chat.MessageTemplate{ID: d.ID, CompanyID: d.CompanyID, Name: d.Name, Status: d.Status, Text: d.Text}
	for _, p := range d.Parameters {
		t.Parameters = append(t.Parameters, chat.TemplateParameter(p))
	}
	return t
}

func templateDocumentOf(t chat.MessageTemplate) templateDocument {
	d := templateDocument{ID: t.ID, CompanyID: t.CompanyID, Name: t.Name, Status: t.Status, Text: t.Text}
	for _, p := range t.Parameters {
		d.Parameters = append(d.Parameters, templateParameterDocument(p))
	}
	return d
}

// Template implements [store.Templates].
func (s *Store) Template(ctx context.Context, id string) (chat.MessageTemplate, error) {
	d, err := get[templateDocument](ctx, s, templates, id)
	return d.template(), err
}

// PutTemplate implements [store.Templates].
func (s *Store) PutTemplate(ctx context.Context, t chat.MessageTemplate) error {
	return s.put(ctx, templates, t.ID, templateDocumentOf(t))
}

// Templates implements [store.Templates].
func (s *Store) Templates(ctx context.Context, companyID string, p store.Page) ([]chat.MessageTemplate, error) {
	return list(ctx, s, templates, ofCompany(companyID, byIDs(p)),
		func(d templateDocument) (chat.MessageTemplate, bool) { return d.template(), true })
}

// ofCompany narrows a list to a company's items; empty: all.
func ofCompany(id string, q listQuery) listQuery {
	if id != "" {
		q.filter = append(bson.D{{Key: "companyId", Value: id}}, q.filter...)
	}
	return q
}
