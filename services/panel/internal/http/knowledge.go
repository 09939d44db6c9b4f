package http

import (
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
)

func (a api) getRanking(c echo.Context, _ caller, company string) (any, error) {
	r, err := a.Admin.Ranking(ctxOf(c), company)
	return view.RankingOf(r.Settings, r.Progress), err
}

func (a api) setRanking(c echo.Context, who caller, company string, change admin.RankingChange) (any, error) {
	r, err := a.Admin.SetRanking(ctxOf(c), who.actor(), company, revisionOf(c), change)
	return view.RankingOf(r.Settings, r.Progress), err
}
