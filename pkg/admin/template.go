package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// MaxTemplates is the maximum number of templates of a company, of up to 125 KiB each.
const MaxTemplates = 1000

// CheckTemplate validates a template. Besides what a push checks, it rejects a parameter that does not occur in the
// text.
func CheckTemplate(t chat.MessageTemplate) error {
	var f apperr.Fields
	checkTitle(&f, "name", t.Name)
	if strings.TrimSpace(t.Text) == "" {
		f.Add("text", fmt.Sprintf("must have 1 to %d characters", chat.MaxTextLength))
	}
	addFaults(&f, t.Check())
	if len(f) > 0 {
		return f.Err()
	}
	placeholders, seen := t.Placeholders(), map[string]bool{}
	for _, p := range t.Parameters {
		switch {
		case seen[p.Name]:
			f.Add("parameters."+p.Name, "is duplicated")
		case !placeholders[p.Name]:
			f.Add("parameters."+p.Name, "does not occur in the text as {{"+p.Name+"}}")
		}
		seen[p.Name] = true
	}
	return f.Err()
}

// addFaults adds the faults of a template or its values.
func addFaults(f *apperr.Fields, faults []chat.DataFault) {
	for _, fault := range faults {
		f.Add(fault.Field, fault.Message)
	}
}

func templateFields(t chat.MessageTemplate) fields {
	parameters := []fields{}
	for _, p := range t.Parameters {
		parameters = append(parameters, fields{"name": p.Name, "default": p.Default})
	}
	return fields{"name": t.Name, "text": t.Text, "parameters": parameters, "status": t.Status}
}

// PutTemplate creates or replaces a template with the given status. With an empty id it generates one. Errors:
// Invalid; Conflict with the reason TOO_MANY_TEMPLATES.
func (s *Service) PutTemplate(ctx context.Context, by Actor, t chat.MessageTemplate) (chat.MessageTemplate, error) {
	if err := CheckTemplate(t); err != nil {
		return t, err
	}
	c := change{companyID: t.CompanyID, action: "template.create", target: "template", after: templateFields(t)}
	if t.ID != "" {
		before, err := s.store.Template(ctx, t.ID)
		switch {
		case err == nil:
			c.action, c.before = "template.update", templateFields(before)
		case !apperr.Is(err, apperr.NotFound):
			return t, err
		}
	}
	if c.before == nil {
		if err := s.admitTemplate(ctx, t.CompanyID); err != nil {
			return t, err
		}
	}
	t.ID = cmp.Or(t.ID, chat.NewID())
	c.id = t.ID
	return t, s.writeTemplate(ctx, by, t, c)
}

func (s *Service) admitTemplate(ctx context.Context, companyID string) error {
	existing, err := s.store.IDs(ctx, store.IDFilter{TemplatesOf: companyID}, store.Page{Limit: MaxTemplates})
	if err == nil && len(existing) >= MaxTemplates {
		err = apperr.TooManyTemplates.New()
	}
	return err
}

func (s *Service) writeTemplate(ctx context.Context, by Actor, t chat.MessageTemplate, c change) error {
	if err := s.store.PutTemplate(ctx, t); err != nil {
		return err
	}
	if c.before != nil {
		if err := s.bus.RPC().Invalidate(ctx, store.CachedTemplate, t.ID); err != nil {
			return err
		}
	}
	return s.audit(ctx, by, c)
}

// SetTemplateStatus changes a template's status. It returns Conflict with the reason TEMPLATE_STATE unless the current
// status is one of from; without from, any status is accepted. The reason is written to the audit log.
func (s *Service) SetTemplateStatus(
	ctx context.Context,
	by Actor,
	id, status, reason string,
	from ...string,
) (chat.MessageTemplate, error) {
	t, err := s.store.Template(ctx, id)
	if err != nil {
		return t, err
	}
	if len(from) > 0 && !slices.Contains(from, t.Status) {
		return t, apperr.TemplateState.WithMessage("The template is " + t.Status)
	}
	c := change{
		companyID: t.CompanyID,
		action:    "template." + status,
		target:    "template",
		id:        t.ID,
		before:    fields{"status": t.Status},
	}
	t.Status = status
	after := fields{"status": status, "text": t.Text}
	if reason != "" {
		after["reason"] = reason
	}
	c.after = after
	return t, s.writeTemplate(ctx, by, t, c)
}
