package http

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
)

// What users change stays in the database that all companies share: records, and an entry of up to 8 KiB in the
// audit log. So changes are charged to the user and to the company. A new route is charged without naming it.

// freeActions are the routes that a user may always call. They write nothing, or they end what has been
// charged when it began: a refusal would keep a token or a user alive.
var freeActions = []string{
	http.MethodPost + " /api/templates/preview",
	http.MethodPost + " /api/templates/:id/test",

	http.MethodDelete + " /api/session",
	http.MethodDelete + " /api/sessions",
	http.MethodDelete + " /api/sessions/:id",
	http.MethodDelete + " /api/users/:id",
	http.MethodDelete + " /api/users/:id/sessions",
	http.MethodPost + " /api/tokens/:id/revoke",
}

// isCharged reports whether a request counts as a change. What agents do in the inbox does not: package budget
// charges the events. An export does, as it leaves an entry in the audit log.
func isCharged(c echo.Context, p account.Permission) bool {
	if c.Path() == exportPath {
		return true
	}
	return changes(c) && p != account.Inbox && !slices.Contains(freeActions, c.Request().Method+" "+c.Path())
}

// chargeChange returns TooMany if the user or the company has changed too much of late.
func (a api) chargeChange(c echo.Context, who caller, p account.Permission) error {
	if !isCharged(c, p) {
		return nil
	}
	if err := a.Limits.UserChanges.Spend(c, who.User.ID, 1); err != nil || who.User.CompanyID == "" {
		return err
	}
	return a.Limits.CompanyChanges.Spend(c, who.User.CompanyID, 1)
}
