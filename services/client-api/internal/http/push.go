package http

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/services/client-api/internal/push"
)

type pushRequest struct {
	TemplateID  string         `json:"templateId"`
	Source      string         `json:"source"`
	Username    *string        `json:"username"`
	Parameters  httpapi.Object `json:"parameters"`
	BodyDryRun  bodyDryRun     `json:"dryRun"`
	queryDryRun queryDryRun
	request     push.Request // set by Validate
}

// read returns the push request and the parameters that are not strings. A null parameter counts as absent.
func (r *pushRequest) read() (push.Request, apperr.Fields) {
	request := push.Request{TemplateID: r.TemplateID, Source: r.Source, Username: r.Username}
	var members map[string]*json.RawMessage
	if len(r.Parameters) == 0 || json.Unmarshal(r.Parameters, &members) != nil { // the decoder guarantees an object
		return request, nil
	}
	var faults apperr.Fields
	request.Parameters = make(map[string]string, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var value string
		switch raw := members[name]; {
		case raw == nil:
		case json.Unmarshal(*raw, &value) != nil:
			faults.Add("parameters."+name, "must be a string")
		default:
			request.Parameters[name] = value
		}
	}
	return request, faults
}

// Validate implements [httpapi.Validator].
func (r *pushRequest) Validate() apperr.Fields {
	request, faults := r.read()
	r.request = request
	f := append(request.Validate(), faults...)
	r.BodyDryRun.validate(&f)
	r.queryDryRun.validate(&f)
	return f
}

func (a api) pushMessage(c echo.Context, companyID string) error {
	r := pushRequest{queryDryRun: queryDryRunOf(c)}
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	if r.queryDryRun == dryRunYes {
		return a.checkPush(c, companyID, r.request)
	}
	if idempotency.HasKey(c.Request().Header) {
		return a.pushOnce(c, companyID, r.request)
	}
	permit := a.Limits.push(c, companyID, r.request.Source)
	answer, err := a.push(c.Request().Context(), companyID, r.request, chat.MessageIdentity{}, permit)
	if err != nil {
		return err
	}
	return ok(c, answer)
}

func (a api) pushOnce(c echo.Context, companyID string, r push.Request) error {
	username := ""
	if r.Username != nil {
		username = *r.Username
	}
	same := []string{strings.ToLower(r.TemplateID), r.Source, username}
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		same = append(same, name, r.Parameters[name])
	}
	return a.Idempotent.Answer(
		c,
		idempotency.Request{
			Scope:       "POST /push-message|" + companyID,
			Fingerprint: idempotency.Fingerprint(same...),
			Permit:      a.Limits.key(c, companyID),
			CompanyID:   companyID,
		},
		func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			return onceAnswer(a.push(ctx, companyID, r, identity, a.Limits.push(c, companyID, r.Source)))
		},
	)
}

func (a api) push(
	ctx context.Context,
	companyID string,
	r push.Request,
	identity chat.MessageIdentity,
	permit idempotency.Permit,
) (sendAnswer, error) {
	pushed, err := a.Pushes.Push(ctx, companyID, r, identity, permit)
	if err != nil {
		return sendAnswer{}, err
	}
	answer := accepted(pushed.MessageID)
	answer.ChatID = pushed.ChatID
	return answer, nil
}

// checkPush answers a dry run.
func (a api) checkPush(c echo.Context, companyID string, r push.Request) error {
	if err := a.Pushes.Check(c.Request().Context(), companyID, r); err != nil {
		return err
	}
	return ok(c, checked())
}
