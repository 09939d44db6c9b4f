package http

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
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
	return answerList(c, "companies", read, companyID, view.CompanyOf, nil)
}

func companyID(company chat.Company) string { return company.ID }

type companyRequest struct {
	Name string `json:"name"`
}

func (a api) createCompany(c echo.Context, who caller, r companyRequest) (any, error) {
	made, err := a.Admin.PutCompany(ctxOf(c), who.actor(), chat.Company{Name: r.Name})
	return created(view.CompanyOf(made)), err
}

// company finds the company of a route.
func (a api) company(c echo.Context, who caller) (chat.Company, error) {
	return recordOf(c, who, a.Store.Company, companyID, apperr.CompanyNotFound)
}

func (a api) renameCompany(c echo.Context, who caller, found chat.Company, r companyRequest) (any, error) {
	renamed, err := a.Admin.PutCompany(ctxOf(c), who.actor(), chat.Company{ID: found.ID, Name: r.Name})
	return view.CompanyOf(renamed), err
}
