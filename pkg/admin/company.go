package admin

import (
	"cmp"
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

const maxTitle = 100 // characters

// checkTitle validates a display name.
func checkTitle(f *apperr.Fields, field, title string) {
	switch {
	case strings.TrimSpace(title) == "":
		f.Add(field, "is required")
	case utf8.RuneCountInString(title) > maxTitle:
		f.Add(field, "must have at most 100 characters")
	case !utf8.ValidString(title) || strings.ContainsFunc(title, unicode.IsControl):
		f.Add(field, "must not contain control characters")
	}
}

// PutCompany creates or renames a company. With an empty id it generates one.
func (s *Service) PutCompany(ctx context.Context, by Actor, c chat.Company) (chat.Company, error) {
	var f apperr.Fields
	checkTitle(&f, "name", c.Name)
	if err := f.Err(); err != nil {
		return c, err
	}
	c.ID = cmp.Or(c.ID, chat.NewID())
	changed := change{
		companyID: c.ID,
		action:    "company.create",
		target:    "company",
		id:        c.ID,
		after:     fields{"name": c.Name},
	}
	before, err := s.store.Company(ctx, c.ID)
	switch {
	case err == nil:
		changed.action, changed.before = "company.rename", fields{"name": before.Name}
		c.WebhookRetention = before.WebhookRetention
	case !apperr.Is(err, apperr.NotFound):
		return c, err
	}
	if err := s.store.PutCompany(ctx, c); err != nil {
		return c, err
	}
	return c, s.audit(ctx, by, changed)
}
