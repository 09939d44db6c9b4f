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
	TemplateID string         `json:"templateId"`
	Source     string         `json:"source"`
	Username   *string        `json:"username"`
	Parameters httpapi.Object `json:"parameters"`
	DryRun     dryRunInBody   `json:"dryRun"`
	dryRun     dryRun
	order      push.Request // set by Validate
}

// read returns the push request and the parameters that are not strings. A null parameter counts as absent.
func (r *pushRequest) read() (push.Request, apperr.Fields) {
	o := push.Request{TemplateID: r.TemplateID, Source: r.Source, Username: r.Username}
	var members map[string]*json.RawMessage
	if len(r.Parameters) == 0 || json.Unmarshal(r.Parameters, &members) != nil { // the decoder guarantees an object
		return o, nil
	}
	var faults apperr.Fields
	o.Parameters = make(map[string]string, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var value string
		switch raw := members[name]; {
		case raw == nil:
		case json.Unmarshal(*raw, &value) != nil:
			faults.Add("parameters."+name, "must be a string")
		default:
			o.Parameters[name] = value
		}
	}
	return o, faults
}

// Validate implements [httpapi.Validator].
func (r *pushRequest) Validate() apperr.Fields {
	order, faults := r.read()
	r.order = order
	return r.dryRun.validate(r.DryRun.validate(append(order.Validate(), faults...)))
}

func (a api) pushMessage(c echo.Context, companyID string) error {
	r := pushRequest{dryRun: dryRunOf(c)}
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	if r.dryRun == dryRunYes {
		return a.checkPush(c, companyID, r.order)
	}
	if err := a.Limits.key(c, companyID); err != nil {
		return err
	}
	if idempotency.HasKey(c.Request().Header) {
		return a.pushOnce(c, companyID, r.order)
	}
	answer, err := a.push(c.Request().Context(), companyID, r.order, chat.MessageIdentity{})
	if err != nil {
		return err
	}
	return ok(c, answer)
}

func (a api) pushOnce(c echo.Context, companyID string, o push.Request) error {
	parts := []string{strings.ToLower(o.TemplateID), o.Source, ""}
	if o.Username != nil {
		parts[2] = *o.Username
	}
	for _, name := range slices.Sorted(maps.Keys(o.Parameters)) {
		parts = append(parts, name, o.Parameters[name])
	}
	return a.Idempotent.Answer(c, "POST /push-message|"+companyID, idempotency.Fingerprint(parts...),
		func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			return onceAnswer(a.push(ctx, companyID, o, identity))
		})
}

func (a api) push(
	ctx context.Context,
	companyID string,
	o push.Request,
	identity chat.MessageIdentity,
) (sendAnswer, error) {
	pushed, err := a.Pushes.Push(ctx, companyID, o, identity)
	if err != nil {
		return sendAnswer{}, err
	}
	answer := accepted(pushed.MessageID)
	answer.ChatID = pushed.ChatID
	return answer, nil
}

// checkPush answers a dry run.
func (a api) checkPush(c echo.Context, companyID string, o push.Request) error {
	if err := a.Pushes.Check(c.Request().Context(), companyID, o); err != nil {
		return err
	}
	return ok(c, checked())
}
