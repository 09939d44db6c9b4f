package http

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/services/panel/internal/signin"
)

// csrfHeader carries the session's CSRF token. A page of another site can neither read the token nor set the header.
const csrfHeader = "X-CSRF-Token"

var (
	errForbidden = apperr.Forbidden.New()
	errCSRF      = apperr.CSRF.New()
)

// caller is a user with a session, and their permissions.
type caller struct {
	signin.Principal
}

func (w caller) actor() admin.Actor { return admin.ActorOf(w.User) }

func (w caller) may(p account.Permission) bool { return p == anyUser || w.User.Role.May(p) }

// sees reports whether the caller may see a company's records. Others are not found.
func (w caller) sees(companyID string) bool {
	return w.User.Role == account.Operator || companyID != "" && w.User.CompanyID == companyID
}

// as runs a handler for a user with the permission.
func (a api) as(p account.Permission, handle func(echo.Context, caller) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := a.SignIn.Resume(ctxOf(c), a.cookie(c, sessionCookie))
		if err != nil {
			return a.Limits.Failures.CountFailure(c, err)
		}
		w := caller{who}
		release, err := a.admit(c, w)
		if err != nil {
			return err
		}
		defer release()
		switch {
		case changes(c) && c.Request().Header.Get(csrfHeader) != account.CSRFToken(who.Secret):
			return errCSRF
		case !w.may(p):
			return errForbidden
		}
		if err := a.chargeChange(c, w, p); err != nil {
			return err
		}
		return a.run(c, w, handle)
	}
}

// changes reports whether the request may change something (RFC 9110, 9.2.1).
func changes(c echo.Context) bool {
	switch c.Request().Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return true
}

// protect refuses cross-site requests, and keeps answers out of caches and frames.
func (a api) protect(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderXContentTypeOptions, "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if a.secure(c) {
			h.Set(echo.HeaderStrictTransportSecurity, "max-age=31536000")
		}
		if !strings.HasPrefix(c.Request().URL.Path, "/api/") {
			return next(c)
		}
		h.Set(echo.HeaderCacheControl, "no-store")
		h.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
		if changes(c) && (c.Request().Header.Get(csrfHeader) == "" || !a.sameOrigin(c)) {
			return errCSRF
		}
		return next(c)
	}
}

// sameOrigin reports whether the Origin header, if the browser sends one, is the panel's own.
func (a api) sameOrigin(c echo.Context) bool {
	if site := c.Request().Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := c.Request().Header.Get(echo.HeaderOrigin)
	return origin == "" || origin == a.origin(c)
}

// origin returns the panel's own origin.
func (a api) origin(c echo.Context) string {
	if a.PublicURL != "" {
		u, err := url.Parse(a.PublicURL)
		if err == nil {
			return u.Scheme + "://" + u.Host
		}
	}
	return c.Scheme() + "://" + c.Request().Host
}

// secure reports whether browsers reach the panel over https. Only a panel on a loopback address has no PublicURL.
func (a api) secure(c echo.Context) bool { return strings.HasPrefix(a.origin(c), "https://") }

// from returns the address, the user agent and the device of a request.
func (a api) from(c echo.Context) signin.Caller {
	return signin.Caller{
		Address:   httpapi.ClientAddress(c),
		UserAgent: c.Request().UserAgent(),
		Device:    a.cookie(c, deviceCookie),
	}
}

// companyOf returns the company of a request: the caller's own, or, for an operator, the one in the query.
func (a api) companyOf(c echo.Context, who caller) (string, error) {
	named := c.QueryParam("companyId")
	if named == "" {
		if who.User.CompanyID == "" {
			return "", apperr.Fields{{Name: "companyId", Message: "is required"}}.Err()
		}
		return who.User.CompanyID, nil
	}
	id, ok := chat.ParseID(named)
	if !ok || !who.sees(id) {
		return "", apperr.CompanyNotFound.New()
	}
	if _, err := a.Store.Company(ctxOf(c), id); err != nil {
		return "", err
	}
	return id, nil
}

// recordOf returns the record that the route names by its id; one of a company that the caller may not see is
// not found.
func recordOf[R any](
	c echo.Context,
	who caller,
	find func(context.Context, string) (R, error),
	companyID func(R) string,
	notFound apperr.Definition,
) (record R, err error) {
	id, ok := chat.ParseID(c.Param("id"))
	if !ok {
		return record, notFound.New()
	}
	found, err := find(ctxOf(c), id)
	if err == nil && !who.sees(companyID(found)) {
		return record, notFound.New()
	}
	return found, err
}
