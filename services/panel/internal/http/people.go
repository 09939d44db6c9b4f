package http

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/panel/internal/live"
)

// getUsers lists a company's users; without a company, an operator gets all.
func (a api) getUsers(c echo.Context, who caller) error {
	company := ""
	if who.User.CompanyID != "" || c.QueryParam("companyId") != "" {
		var err error
		if company, err = a.companyOf(c, who); err != nil {
			return err
		}
	}
	found, next, err := a.readUsers(c, company)
	if err != nil {
		return err
	}
	return answerPage(c, next, map[string]any{"users": viewsOf(found, viewOfUser)})
}

// readUsers reads a page of a company's users, or of all if company is empty.
func (a api) readUsers(c echo.Context, company string) (found []account.User, next string, err error) {
	read := func(ctx context.Context, p store.Page) ([]account.User, error) { return a.Store.Users(ctx, company, p) }
	return readPage(c, read, func(u account.User) string { return u.ID })
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
	unvalidated `json:"-"`
	Email       string       `json:"email"`
	Name        string       `json:"name"`
	Role        account.Role `json:"role"`
}

// inviteUser adds a user of a company; an operator also adds operators.
func (a api) inviteUser(c echo.Context, who caller) error {
	var r inviteRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	company := ""
	switch {
	case r.Role == account.Operator && who.User.Role != account.Operator:
		return errForbidden
	case r.Role != account.Operator:
		var err error
		if company, err = a.companyOf(c, who); err != nil {
			return err
		}
	}
	u := account.NewUser(r.Email, r.Name, r.Role, company, a.Now())
	token, err := a.Admin.InviteUser(ctxOf(c), who.actor(), u)
	if err != nil {
		return err
	}
	if u, err = a.Store.User(ctxOf(c), u.ID); err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]any{"user": viewOfUser(u), "invitationUrl": a.invitationURL(c, token)})
}

// invitationURL puts the token into the fragment, which is not in requests or Referer headers.
func (a api) invitationURL(c echo.Context, token string) string {
	base := a.PublicURL
	if base == "" {
		base = a.origin(c)
	}
	return strings.TrimSuffix(base, "/") + "/#/invitation/" + token
}

func (a api) renewInvitation(c echo.Context, who caller) error {
	u, err := a.user(c, who)
	if err != nil {
		return err
	}
	u, token, err := a.Admin.RenewInvitation(ctxOf(c), who.actor(), u.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"user": viewOfUser(u), "invitationUrl": a.invitationURL(c, token)})
}

type editUserRequest struct {
	unvalidated `json:"-"`
	Name        *string       `json:"name"`
	Role        *account.Role `json:"role"`
	Disabled    *bool         `json:"disabled"`
}

func (a api) editUser(c echo.Context, who caller) error {
	u, err := a.user(c, who)
	if err != nil {
		return err
	}
	var r editUserRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	if u, err = a.Admin.EditUser(ctxOf(c), who.actor(), u.ID, r.Name, r.Role, r.Disabled); err != nil {
		return err
	}
	a.noteAccess(c, u)
	return c.JSON(http.StatusOK, viewOfUser(u))
}

// noteAccess ends the event streams of a user at once. If the notice is lost, the next heartbeat of each
// stream ends it.
func (a api) noteAccess(c echo.Context, u account.User) {
	_ = a.Calls.Signal(live.Notice{CompanyID: u.CompanyID, Kind: live.Access, UserID: u.ID})
}

func (a api) deleteUser(c echo.Context, who caller) error {
	u, err := a.user(c, who)
	if err != nil {
		return err
	}
	if err := a.Admin.DeleteUser(ctxOf(c), who.actor(), u.ID); err != nil {
		return err
	}
	a.noteAccess(c, u)
	return c.NoContent(http.StatusNoContent)
}

func (a api) getUserSessions(c echo.Context, who caller) error {
	u, err := a.user(c, who)
	if err != nil {
		return err
	}
	return a.listSessions(c, who, u.ID)
}

func (a api) endUserSessions(c echo.Context, who caller) error {
	u, err := a.user(c, who)
	if err != nil {
		return err
	}
	if err := a.Admin.EndSessions(ctxOf(c), who.actor(), u); err != nil {
		return err
	}
	a.noteAccess(c, u)
	return c.NoContent(http.StatusNoContent)
}

type entryView struct {
	ID       string          `json:"id"`
	At       chat.Time       `json:"at"`
	UserID   string          `json:"userId,omitempty"`
	User     string          `json:"user"`
	Action   string          `json:"action"`
	Target   string          `json:"target"`
	TargetID string          `json:"targetId"`
	Before   json.RawMessage `json:"before,omitempty"`
	After    json.RawMessage `json:"after,omitempty"`
}

func viewOfEntry(e account.AuditEntry) entryView {
	return entryView{
		ID:       e.ID,
		At:       chat.Time(e.At),
		UserID:   e.UserID,
		User:     e.User,
		Action:   e.Action,
		Target:   e.Target,
		TargetID: e.TargetID,
		Before:   e.Before,
		After:    e.After,
	}
}

// getAudit lists a company's audit log; without a company, an operator gets all.
func (a api) getAudit(c echo.Context, who caller) error {
	filter := store.AuditFilter{TargetID: c.QueryParam("target")}
	if who.User.CompanyID != "" || c.QueryParam("companyId") != "" {
		var err error
		if filter.CompanyID, err = a.companyOf(c, who); err != nil {
			return err
		}
	}
	return a.answerEntries(c, filter)
}

// answerEntries answers a page of the audit log.
func (a api) answerEntries(c echo.Context, f store.AuditFilter) error {
	read := func(ctx context.Context, p store.Page) ([]account.AuditEntry, error) {
		return a.Store.AuditEntries(ctx, f, p)
	}
	rows, next, err := readRows(c, read, func(e account.AuditEntry) string { return e.ID }, viewOfEntry)
	if err != nil {
		return err
	}
	return answerPage(c, next, map[string]any{"entries": rows})
}
