package http

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/store"
)

// getCompanies lists the companies that the caller may see.
func (a api) getCompanies(c echo.Context, who caller) error {
	read := a.Store.Companies
	if who.User.Role != account.Operator {
		read = func(ctx context.Context, _ store.Page) ([]chat.Company, error) {
			own, err := a.Store.Company(ctx, who.User.CompanyID)
			return []chat.Company{own}, err
		}
	}
	found, next, err := readPage(c, read, func(company chat.Company) string { return company.ID })
	if err != nil {
		return err
	}
	return answerPage(c, next, map[string]any{"companies": view.ListOf(found, view.CompanyOf)})
}

type companyRequest struct {
	unvalidated `json:"-"`
	Name        string `json:"name"`
}

func (a api) createCompany(c echo.Context, who caller) error {
	return a.putCompany(c, who, "", http.StatusCreated)
}

func (a api) renameCompany(c echo.Context, who caller) error {
	id, ok := chat.ParseID(c.Param("id"))
	if !ok || !who.sees(id) {
		return apperr.CompanyNotFound.New()
	}
	if _, err := a.Store.Company(ctxOf(c), id); err != nil {
		return err
	}
	return a.putCompany(c, who, id, http.StatusOK)
}

func (a api) putCompany(c echo.Context, who caller, id string, status int) error {
	var r companyRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	company, err := a.Admin.PutCompany(ctxOf(c), who.actor(), chat.Company{ID: id, Name: r.Name})
	if err != nil {
		return err
	}
	return c.JSON(status, view.CompanyOf(company))
}
