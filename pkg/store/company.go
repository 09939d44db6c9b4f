package store

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/chat"
)

type companyDocument struct {
	ID   string `bson:"_id"`
	Name string `bson:"name"`
}

// Company returns the company, or NotFound.
func (s *Store) Company(ctx context.Context, id string) (chat.Company, error) {
	d, err := get[companyDocument](ctx, s, companies, id)
	return chat.Company(d), err
}

// PutCompany writes the company, whether or not it was there.
func (s *Store) PutCompany(ctx context.Context, c chat.Company) error {
	return s.put(ctx, companies, c.ID, companyDocument(c))
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

// Template returns the message template, or NotFound.
func (s *Store) Template(ctx context.Context, id string) (chat.MessageTemplate, error) {
	d, err := get[templateDocument](ctx, s, templates, id)
	return d.template(), err
}

func (d templateDocument) template() chat.MessageTemplate {
	t := chat.MessageTemplate{ID: d.ID, CompanyID: d.CompanyID, Name: d.Name, Status: d.Status, Text: d.Text}
	for _, p := range d.Parameters {
		t.Parameters = append(t.Parameters, chat.TemplateParameter(p))
	}
	return t
}

// PutTemplate writes the template, whether or not it was there.
func (s *Store) PutTemplate(ctx context.Context, t chat.MessageTemplate) error {
	d := templateDocument{ID: t.ID, CompanyID: t.CompanyID, Name: t.Name, Status: t.Status, Text: t.Text}
	for _, p := range t.Parameters {
		d.Parameters = append(d.Parameters, templateParameterDocument(p))
	}
	return s.put(ctx, templates, t.ID, d)
}

// isJSON guards what is stored as text: BSON strings must be valid UTF-8, and readers must be able to parse it.
func isJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }

// utc is a time as it goes anywhere: UTC, in milliseconds. Zero stays zero.
func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
