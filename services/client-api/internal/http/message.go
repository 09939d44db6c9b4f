package http

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/services/client-api/internal/message"
)

type sendRequest struct {
	Type        string         `json:"type"`
	Data        httpapi.Object `json:"data"`
	ChatID      string         `json:"chatId"`
	SenderName  *string        `json:"senderName"`
	BodyDryRun  bodyDryRun     `json:"dryRun"`
	queryDryRun queryDryRun
}

func (r *sendRequest) draft() message.Draft {
	return message.Draft{
		Type:       chat.MessageType(r.Type),
		Data:       json.RawMessage(r.Data),
		ChatID:     r.ChatID,
		SenderName: r.SenderName,
	}
}

// Validate implements [httpapi.Validator].
func (r *sendRequest) Validate() apperr.Fields {
	f := r.draft().Validate()
	r.BodyDryRun.validate(&f)
	r.queryDryRun.validate(&f)
	return f
}

func (a api) sendMessage(c echo.Context, companyID string) error {
	r := sendRequest{queryDryRun: queryDryRunOf(c)}
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	if r.queryDryRun == dryRunYes { // with or without a key: nothing is sent
		return a.checkMessage(c, companyID, r.draft())
	}
	if idempotency.HasKey(c.Request().Header) {
		return a.sendOnce(c, companyID, &r)
	}
	permit := a.Limits.message(c, companyID, r.ChatID)
	answer, err := a.send(c.Request().Context(), companyID, r.draft(), chat.MessageIdentity{}, permit)
	if err != nil {
		return err
	}
	return ok(c, answer)
}

func (a api) sendOnce(c echo.Context, companyID string, r *sendRequest) error {
	same := []string{r.Type, strings.ToLower(r.ChatID), idempotency.Canonical(r.Data)}
	if r.SenderName != nil {
		same = append(same, *r.SenderName)
	}
	return a.Idempotent.Answer(
		c,
		idempotency.Request{
			Scope:       "POST /message/send|" + companyID,
			Fingerprint: idempotency.Fingerprint(same...),
			Permit:      a.Limits.key(c, companyID),
			CompanyID:   companyID,
		},
		func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			permit := a.Limits.message(c, companyID, r.ChatID)
			return onceAnswer(a.send(ctx, companyID, r.draft(), identity, permit))
		},
	)
}

func (a api) send(
	ctx context.Context,
	companyID string,
	d message.Draft,
	identity chat.MessageIdentity,
	permit idempotency.Permit,
) (sendAnswer, error) {
	sent, err := a.Messages.Send(ctx, companyID, d, identity, permit)
	if err != nil {
		return sendAnswer{}, err
	}
	answer := accepted(sent.MessageID)
	answer.WindowExpiresAt = timestamp(sent.WindowExpiresAt)
	return answer, nil
}

// checkMessage answers a dry run.
func (a api) checkMessage(c echo.Context, companyID string, d message.Draft) error {
	windowExpiresAt, err := a.Messages.Check(c.Request().Context(), companyID, d)
	if err != nil {
		return err
	}
	answer := checked()
	answer.WindowExpiresAt = timestamp(windowExpiresAt)
	return ok(c, answer)
}
