package sqlite

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const templateColumns = `id, company_id, name, status, text, parameters`

// templateParameter is a [chat.TemplateParameter] in the JSON of its column.
type templateParameter struct {
	Name    string `json:"name"`
	Default string `json:"default"`
}

func readTemplate(r *row) chat.MessageTemplate {
	t := chat.MessageTemplate{ID: r.text(), CompanyID: r.text(), Name: r.text(), Status: r.text(), Text: r.text()}
	for _, p := range list[templateParameter](r) {
		t.Parameters = append(t.Parameters, chat.TemplateParameter(p))
	}
	return t
}

// Template implements [store.Templates].
func (s *Store) Template(ctx context.Context, id string) (chat.MessageTemplate, error) {
	return one(
		ctx, s, "reading a template", `SELECT `+templateColumns+` FROM templates WHERE id = ?`, readTemplate,
		apperr.TemplateNotFound, id,
	)
}

// PutTemplate implements [store.Templates].
func (s *Store) PutTemplate(ctx context.Context, t chat.MessageTemplate) error {
	return update(ctx, s, "writing a template", func(c *conn) error { return putTemplate(c, t) })
}

func putTemplate(c *conn, t chat.MessageTemplate) error {
	var parameters []templateParameter
	for _, p := range t.Parameters {
		parameters = append(parameters, templateParameter(p))
	}
	_, err := c.insert(orReplace, `templates`, templateColumns,
		t.ID, t.CompanyID, t.Name, t.Status, t.Text, listText(parameters))
	return err
}

// Templates implements [store.Templates].
func (s *Store) Templates(ctx context.Context, companyID string, p store.Page) ([]chat.MessageTemplate, error) {
	const from = `SELECT ` + templateColumns + ` FROM templates WHERE id > ?`
	return listOfCompany(ctx, s, "listing templates", from, readTemplate, companyID, p)
}
