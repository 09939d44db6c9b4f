package http

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/form"
	"github.com/parley-chat/parley/pkg/idempotency"
)

// replyFile sends a file once for each Idempotency-Key. The file of a repeated request is removed.
func (a api) replyFile(c echo.Context, who caller) error {
	found, err := a.chat(c, who)
	if err != nil {
		return err
	}
	if !idempotency.HasKey(c.Request().Header) {
		return errKeyRequired
	}
	upload, err := a.Attachments.Begin(ctxOf(c), attachment.Sender{
		CompanyID:  found.CompanyID,
		AppID:      found.AppID,
		ChatUserID: found.ChatUserID,
		ID:         who.User.ID,
		Address:    httpapi.ClientAddress(c),
	})
	if err != nil {
		return err
	}
	defer upload.End()
	kept, caption, err := a.receive(c, upload, found)
	if err != nil {
		return err
	}
	used := false
	defer func() {
		if !used {
			upload.Discard(ctxOf(c), kept)
		}
	}()
	data, err := kept.Data(strings.TrimSuffix(a.WidgetBaseURL, "/"), caption)
	if err != nil {
		return err
	}
	draft := admin.Draft{Type: kept.Kind.Type, Data: data}
	if err := draft.Check(); err != nil {
		return err
	}
	return a.Idempotent.Answer(
		c,
		idempotency.Request{
			Scope:       "POST /api/chats/files|" + who.User.ID + "|" + found.ID,
			Fingerprint: idempotency.Fingerprint(kept.Digest, kept.Name, caption),
			Permit:      a.Limits.key(c, who.User.ID, found.CompanyID),
		},
		func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			m, err := a.Admin.Reply(ctx, who.User, found.ID, draft, identity)
			used = err == nil && string(m.Data) == string(data)
			return idempotency.Answer{Status: http.StatusCreated, Body: m.AppendJSON(nil)}, err
		},
	)
}

// receive stores the file of the form. After an error nothing is stored.
func (a api) receive(
	c echo.Context,
	upload *attachment.Upload,
	found chat.Chat,
) (kept file.Kept, caption string, err error) {
	app, err := a.Store.Application(ctxOf(c), found.AppID)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return kept, "", err
	}
	f, err := form.Open(c, a.Forms, upload.Slot())
	if err != nil {
		return kept, "", err
	}
	incoming, err := f.File()
	if err != nil {
		return kept, "", err
	}
	kept, err = upload.Keep(ctxOf(c), app, incoming)
	if err != nil {
		return kept, "", f.Cause(err)
	}
	caption, err = f.Rest()
	if err != nil {
		upload.Discard(ctxOf(c), kept)
	}
	return kept, caption, err
}
