package http

import (
	"context"
	"io"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

func (a api) getVisitors(c echo.Context, _ caller, company string) error {
	text := strings.TrimSpace(c.QueryParam("q"))
	read := func(ctx context.Context, p store.Page) ([]chat.Visitor, string, error) {
		return a.Store.FindVisitors(ctx, company, text, p)
	}
	return answerExamined(c, "visitors", read, func(v chat.Visitor) string { return v.ID }, view.VisitorOf)
}

// visitor finds the visitor of a route.
func (a api) visitor(c echo.Context, who caller) (chat.Visitor, error) {
	return recordOf(c, who, a.Store.Visitor, func(v chat.Visitor) string { return v.CompanyID }, apperr.VisitorNotFound)
}

func (a api) exportVisitor(c echo.Context, who caller) error {
	v, err := a.visitor(c, who)
	if err != nil {
		return err
	}
	d := &download{c: c, name: "visitor-" + v.ID + ".json"}
	return d.run(func(w io.Writer) error { return a.Admin.ExportVisitor(ctxOf(c), who.actor(), v, w) })
}

type eraseRequest struct {
	Confirm string `json:"confirm"`
}

func (a api) eraseVisitor(c echo.Context, who caller, v chat.Visitor, r eraseRequest) (any, error) {
	if r.Confirm != v.ID {
		return nil, apperr.Fields{{Name: "confirm", Message: "must be the visitor's id"}}.Err()
	}
	return a.Admin.EraseVisitor(ctxOf(c), who.actor(), v, a.Streams, a.Files)
}
