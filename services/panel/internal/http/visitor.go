package http

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
)

func (a api) getVisitors(c echo.Context, who caller) error {
	company, err := a.companyOf(c, who)
	if err != nil {
		return err
	}
	limit, err := limitOf(c)
	if err != nil {
		return err
	}
	found, err := a.Store.FindVisitors(ctxOf(c), company, strings.TrimSpace(c.QueryParam("q")), limit)
	if err != nil {
		return err
	}
	rows := []visitorView{}
	for _, v := range found {
		rows = append(rows, viewOfVisitor(v))
	}
	return c.JSON(http.StatusOK, map[string]any{"visitors": rows})
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
	export, err := a.Admin.ExportVisitor(ctxOf(c), who.actor(), v)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="visitor-`+v.ID+`.json"`)
	return answerJSON(c, http.StatusOK, export)
}

type eraseRequest struct {
	unvalidated `json:"-"`
	Confirm     string `json:"confirm"`
}

func (a api) eraseVisitor(c echo.Context, who caller) error {
	v, err := a.visitor(c, who)
	if err != nil {
		return err
	}
	var r eraseRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	if r.Confirm != v.ID {
		return apperr.Fields{{Name: "confirm", Message: "must be the visitor's id"}}.Err()
	}
	receipt, err := a.Admin.EraseVisitor(ctxOf(c), who.actor(), v, a.Streams, a.Files)
	if err != nil {
		return err
	}
	return answerJSON(c, http.StatusOK, receipt)
}
