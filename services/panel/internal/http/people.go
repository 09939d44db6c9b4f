package http

import (
	"context"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/panel/internal/live"
)

// companyOrAll returns the company of a request; without one, an operator gets "": all.
func (a api) companyOrAll(c echo.Context, who caller) (string, error) {
	if who.User.CompanyID == "" && c.QueryParam("companyId") == "" {
		return "", nil
	}
	return a.companyOf(c, who)
}

func (a api) getUsers(c echo.Context, _ caller, company string) error {
	found, next, err := a.readUsers(c, company)
	if err != nil {
		return err
	}
	return answerPage(c, next, map[string]any{"users": view.ListOf(found, view.UserOf)})
}

// readUsers reads a page of a company's users, or of all if company is empty.
func (a api) readUsers(c echo.Context, company string) (found []account.User, next string, err error) {
	return readPage(c, recordsOf(a.Store.Users, company), func(u account.User) string { return u.ID })
}

// user finds the user of a route.
func (a api) user(c echo.Context, who caller) (account.User, error) {
	u, err := a.Store.User(ctxOf(c), c.Param("id"))
	if err == nil && !who.sees(u.CompanyID) {
		return account.User{}, apperr.UserNotFound.New()
	}
	return u, err
}

type inviteRequest struct {
	Email string       `json:"email"`
	Name  string       `json:"name"`
	Role  account.Role `json:"role"`
}

// inviteUser adds a user of a company; an operator also adds operators.
func (a api) inviteUser(c echo.Context, who caller, r inviteRequest) (any, error) {
	company := ""
	switch {
	case r.Role == account.Operator && who.User.Role != account.Operator:
		return nil, errForbidden
	case r.Role != account.Operator:
		var err error
		company, err = a.companyOf(c, who)
		if err != nil {
			return nil, err
		}
	}
	u := account.NewUser(r.Email, r.Name, r.Role, company, a.Now())
	u, token, err := a.Admin.InviteUser(ctxOf(c), who.actor(), u)
	if err != nil {
		return nil, err
	}
	u, err = a.Store.User(ctxOf(c), u.ID)
	return created(a.invitation(c, u, token)), err
}

// invitation returns an invited user with the link to send.
func (a api) invitation(c echo.Context, u account.User, token string) map[string]any {
	return map[string]any{"user": view.UserOf(u), "invitationUrl": a.invitationURL(c, token)}
}

// invitationURL puts the token into the fragment, which is not in requests or Referer headers.
func (a api) invitationURL(c echo.Context, token string) string {
	base := a.PublicURL
	if base == "" {
		base = a.origin(c)
	}
	return strings.TrimSuffix(base, "/") + "/#/invitation/" + token
}

func (a api) renewInvitation(c echo.Context, who caller, u account.User) (any, error) {
	u, token, err := a.Admin.RenewInvitation(ctxOf(c), who.actor(), u.ID)
	return a.invitation(c, u, token), err
}

func (a api) editUser(c echo.Context, who caller, u account.User, r admin.UserChange) (any, error) {
	u, err := a.Admin.EditUser(ctxOf(c), who.actor(), u.ID, r)
	if err != nil {
		return nil, err
	}
	a.noteAccess(c, u)
	return view.UserOf(u), nil
}

// noteAccess ends the event streams of a user at once. If the notice is lost, the next heartbeat of each
// stream ends it.
func (a api) noteAccess(c echo.Context, u account.User) {
	_ = a.Calls.Signal(live.Notice{CompanyID: u.CompanyID, Kind: live.Access, UserID: u.ID})
}

func (a api) deleteUser(c echo.Context, who caller, u account.User) (any, error) {
	if err := a.Admin.DeleteUser(ctxOf(c), who.actor(), u.ID); err != nil {
		return nil, err
	}
	a.noteAccess(c, u)
	return nil, nil
}

func (a api) getUserSessions(c echo.Context, who caller, u account.User) error {
	return a.listSessions(c, who, u.ID)
}

func (a api) endUserSessions(c echo.Context, who caller, u account.User) (any, error) {
	if err := a.Admin.EndSessions(ctxOf(c), who.actor(), u); err != nil {
		return nil, err
	}
	a.noteAccess(c, u)
	return nil, nil
}

func (a api) getAudit(c echo.Context, _ caller, company string) error {
	return a.answerEntries(c, store.AuditFilter{CompanyID: company, TargetID: c.QueryParam("target")})
}

// answerEntries answers a page of the audit log.
func (a api) answerEntries(c echo.Context, f store.AuditFilter) error {
	read := func(ctx context.Context, p store.Page) ([]account.AuditEntry, error) {
		return a.Store.AuditEntries(ctx, f, p)
	}
	return answerRows(c, "entries", read, func(e account.AuditEntry) string { return e.ID }, view.AuditEntryOf)
}
