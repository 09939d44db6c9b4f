package http

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/idempotency"
)

var errForm = apperr.MalformedForm.New()

// replyFile sends a file once for each Idempotency-Key. The file of a repeated request is removed.
func (a api) replyFile(c echo.Context, who caller) error {
	found, err := a.chat(c, who)
	if err != nil {
		return err
	}
	if !idempotency.HasKey(c.Request().Header) {
		return errKeyRequired
	}
	kept, caption, err := a.receive(c, found)
	if err != nil {
		return err
	}
	used := false
	defer func() {
		if !used {
			if err := a.Uploads.Discard(context.WithoutCancel(ctxOf(c)), kept); err != nil {
				a.Logger.WarnContext(ctxOf(c), "removing a file without a message failed", "error", err)
			}
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
	return a.Idempotent.Answer(c, "POST /api/chats/files|"+who.User.ID+"|"+found.ID, idempotency.Fingerprint(kept.Digest, kept.Name, caption),
		func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			m, err := a.Admin.Reply(ctx, who.User, found.ID, draft, identity)
			used = err == nil && string(m.Data) == string(data)
			return idempotency.Answer{Status: http.StatusCreated, Body: m.AppendJSON(nil)}, err
		})
}

// receive reads the form as it arrives: one file, and optionally a caption.
func (a api) receive(c echo.Context, found chat.Chat) (kept file.Kept, caption string, err error) {
	r := c.Request()
	kind, parameters, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if err != nil || kind != "multipart/form-data" {
		return kept, "", apperr.UnsupportedMediaType.WithMessage("The Content-Type must be multipart/form-data")
	}
	app, err := a.Store.Application(ctxOf(c), found.AppID)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return kept, "", err
	}
	const formBytes = 64 << 10 // apart from the file
	r.Body = http.MaxBytesReader(c.Response(), r.Body, a.Uploads.MaxBytes+formBytes)
	form, have := multipart.NewReader(r.Body, parameters["boundary"]), false
	defer func() {
		if err != nil && have {
			err = errors.Join(err, a.Uploads.Discard(context.WithoutCancel(ctxOf(c)), kept))
		}
	}()
	for {
		part, failed := form.NextPart()
		if errors.Is(failed, io.EOF) {
			break
		}
		if failed != nil {
			return kept, "", asForm(failed)
		}
		switch {
		case part.FormName() == "file" && !have:
			if kept, err = a.Uploads.Keep(ctxOf(c), found, app, part.FileName(), part.Header.Get(echo.HeaderContentType), part); err != nil {
				return kept, "", asForm(err)
			}
			have = true
		case part.FormName() == "caption":
			text, failed := io.ReadAll(io.LimitReader(part, 4*chat.MaxTextLength+1))
			if failed != nil {
				return kept, "", asForm(failed)
			}
			if caption = string(text); utf8.RuneCountInString(caption) > chat.MaxTextLength || !utf8.ValidString(caption) {
				return kept, "", apperr.Fields{{Name: "caption", Message: "must have at most 4096 characters"}}.Err()
			}
		default:
			return kept, "", apperr.Fields{{Name: part.FormName(), Message: "is not a field of the form, or is sent twice"}}.Err()
		}
	}
	if !have {
		return kept, "", apperr.Fields{{Name: "file", Message: "is required"}}.Err()
	}
	return kept, caption, nil
}

// asForm returns a MALFORMED_FORM error, except for coded errors and the limit of the body.
func asForm(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*apperr.Error](err); ok {
		return err
	}
	return errForm.Wrap(err)
}
