package http

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

type templateView struct {
	view.Template
	Reason string `json:"reason,omitempty"` // of a rejection
}

// viewOfTemplate also has the reason of a rejection, from the audit log.
func (a api) viewOfTemplate(ctx context.Context, t chat.MessageTemplate) (any, error) {
	v := templateView{Template: view.TemplateOf(t)}
	if t.Status != chat.TemplateRejected {
		return v, nil
	}
	filter := store.AuditFilter{CompanyID: t.CompanyID, TargetID: t.ID}
	entries, err := a.Store.AuditEntries(ctx, filter, store.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		var after struct{ Reason string }
		if json.Unmarshal(e.After, &after) == nil {
			v.Reason = after.Reason
		}
	}
	return v, nil
}

func (a api) getTemplates(c echo.Context, _ caller, company string) error {
	id := func(t chat.MessageTemplate) string { return t.ID }
	return answerRows(c, "templates", recordsOf(a.Store.Templates, company), id, view.TemplateOf)
}

// template finds the template of a route.
func (a api) template(c echo.Context, who caller) (chat.MessageTemplate, error) {
	return recordOf(
		c, who, a.Store.Template, func(t chat.MessageTemplate) string { return t.CompanyID },
		apperr.TemplateNotFound,
	)
}

func (a api) getTemplate(c echo.Context, _ caller, t chat.MessageTemplate) (any, error) {
	return a.viewOfTemplate(ctxOf(c), t)
}

type templateRequest struct {
	Name       string           `json:"name"`
	Text       string           `json:"text"`
	Parameters []view.Parameter `json:"parameters"`
}

func (r templateRequest) apply(t chat.MessageTemplate) chat.MessageTemplate {
	t.Name = r.Name
	t.Text = r.Text
	t.Status = chat.TemplateDraft // a change is approved again
	t.Parameters = nil
	for _, p := range r.Parameters {
		t.Parameters = append(t.Parameters, chat.TemplateParameter(p))
	}
	return t
}

func (a api) createTemplate(c echo.Context, who caller, company string, r templateRequest) (any, error) {
	t, err := a.Admin.PutTemplate(ctxOf(c), who.actor(), r.apply(chat.MessageTemplate{CompanyID: company}))
	return created(view.TemplateOf(t)), err
}

func (a api) updateTemplate(
	c echo.Context, who caller, t chat.MessageTemplate, r templateRequest,
) (any, error) {
	t, err := a.Admin.PutTemplate(ctxOf(c), who.actor(), r.apply(t))
	return view.TemplateOf(t), err
}

func (a api) submitTemplate(c echo.Context, who caller, t chat.MessageTemplate) (any, error) {
	return a.moveTemplate(c, who, t, chat.TemplatePending, "", chat.TemplateDraft, chat.TemplateRejected)
}

func (a api) approveTemplate(c echo.Context, who caller, t chat.MessageTemplate) (any, error) {
	return a.moveTemplate(c, who, t, chat.TemplateApproved, "", chat.TemplatePending, chat.TemplateRejected)
}

type rejectRequest struct {
	Reason string `json:"reason"`
}

// Validate implements [httpapi.Validator].
func (r rejectRequest) Validate() (faults apperr.Fields) {
	const maxReason = 1000
	if r.Reason == "" || len(r.Reason) > maxReason {
		faults.Add("reason", "must have 1 to 1000 bytes")
	}
	return faults
}

func (a api) rejectTemplate(
	c echo.Context, who caller, t chat.MessageTemplate, r rejectRequest,
) (any, error) {
	return a.moveTemplate(c, who, t, chat.TemplateRejected, r.Reason, chat.TemplatePending, chat.TemplateApproved)
}

func (a api) moveTemplate(
	c echo.Context, who caller, t chat.MessageTemplate, status, reason string, from ...string,
) (any, error) {
	t, err := a.Admin.SetTemplateStatus(ctxOf(c), who.actor(), t.ID, status, reason, from...)
	if err != nil {
		return nil, err
	}
	return a.viewOfTemplate(ctxOf(c), t)
}

func (a api) getTemplateHistory(c echo.Context, _ caller, t chat.MessageTemplate) error {
	return a.answerEntries(c, store.AuditFilter{CompanyID: t.CompanyID, TargetID: t.ID})
}

type previewRequest struct {
	Text       string            `json:"text"`
	Parameters []view.Parameter  `json:"parameters"`
	Username   string            `json:"username"`
	Values     map[string]string `json:"values"`
}

func (r previewRequest) template() chat.MessageTemplate {
	return templateRequest{Text: r.Text, Parameters: r.Parameters}.apply(chat.MessageTemplate{})
}

// Validate implements [httpapi.Validator].
func (r previewRequest) Validate() apperr.Fields {
	return slices.Concat(fieldsOf(r.template().Check()), fieldsOf(chat.CheckValues(r.Values)))
}

// fieldsOf converts the faults of a template.
func fieldsOf(faults []chat.DataFault) (fields apperr.Fields) {
	for _, f := range faults {
		fields.Add(f.Field, f.Message)
	}
	return fields
}

func (a api) previewTemplate(_ echo.Context, _ caller, r previewRequest) (any, error) {
	t := r.template()
	filled, _ := t.Fill(r.Username, r.Values)
	missing := []string{}
	for _, p := range t.Parameters {
		if filled.Values[p.Name] == "" {
			missing = append(missing, p.Name)
		}
	}
	return map[string]any{"text": filled.Text, "missing": missing}, nil
}

type testRequest struct {
	Source   string            `json:"source"`
	Username string            `json:"username"`
	Values   map[string]string `json:"values"`
}

// Validate implements [httpapi.Validator].
func (r testRequest) Validate() apperr.Fields { return fieldsOf(chat.CheckValues(r.Values)) }

// testTemplate answers the result of a push without sending it.
func (a api) testTemplate(_ echo.Context, _ caller, t chat.MessageTemplate, r testRequest) (any, error) {
	filled, faults := t.Fill(r.Username, r.Values)
	problems := []string{}
	for _, f := range faults {
		problems = append(problems, f.Field+" "+f.Message)
	}
	const shortest, shortestName = 11, 3 // specification, "Limits"
	if _, ok := chat.ParsePhone(r.Source); !ok || len(r.Source) < shortest {
		problems = append(problems, "source must be a phone number of at least 11 characters: "+chat.PhoneRule)
	}
	if r.Username != "" && len([]rune(r.Username)) < shortestName {
		problems = append(problems, "username must have at least 3 characters")
	}
	if t.Status != chat.TemplateApproved {
		problems = append(problems, "the template is "+t.Status+", not approved")
	}
	return map[string]any{
		"text": filled.Text, "source": r.Source, "wouldSend": len(problems) == 0, "problems": problems,
	}, nil
}
