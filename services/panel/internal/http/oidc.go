package http

import (
	"encoding/base64"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/services/panel/internal/signin"
)

const (
	secureAttempt = "__Host-parley-panel-oidc"
	plainAttempt  = "parley-panel-oidc"
	oidcPath      = "/api/oidc"
	// oidcTimeout is the time limit of a sign-in at the issuer.
	oidcTimeout = 10 * time.Minute
)

var errNoOIDC = apperr.OIDCNotConfigured.New()

// startOIDC redirects the browser to the issuer.
func (a api) startOIDC(c echo.Context) error {
	location, err := a.startAttempt(c, "")
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusFound, location)
}

// acceptWithOIDC starts a sign-in that accepts an invitation. The token is in the body: URLs are logged.
func (a api) acceptWithOIDC(c echo.Context) error {
	r, err := decoded[invitationRequest](c)
	if err != nil {
		return err
	}
	if _, err := a.SignIn.Invited(ctxOf(c), r.Token, a.from(c)); err != nil {
		return err
	}
	location, err := a.startAttempt(c, r.Token)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"location": location})
}

// startAttempt returns the issuer's URL and keeps the attempt in the browser.
func (a api) startAttempt(c echo.Context, invitation string) (location string, err error) {
	if a.OIDC == nil {
		return "", errNoOIDC
	}
	location, keep, err := a.OIDC.Start(ctxOf(c), invitation, a.from(c).Device)
	if err != nil {
		return "", err
	}
	a.keepAttempt(c, keep)
	return location, nil
}

// keepAttempt stores the attempt in a cookie; an empty one deletes it.
func (a api) keepAttempt(c echo.Context, keep string) {
	cookie := &http.Cookie{
		Name:     a.cookieName(c, secureAttempt, plainAttempt),
		Value:    base64.RawURLEncoding.EncodeToString([]byte(keep)),
		Path:     "/",
		HttpOnly: true,
		Secure:   a.secure(c),
		SameSite: http.SameSiteLaxMode, MaxAge: int(oidcTimeout.Seconds()),
	}
	if keep == "" {
		cookie.MaxAge = -1
	}
	c.SetCookie(cookie)
}

// finishOIDC handles the redirect from the issuer. The state in the browser's cookie proves that this browser
// started the attempt.
func (a api) finishOIDC(c echo.Context) error {
	if a.OIDC == nil {
		return errNoOIDC
	}
	kept := ""
	if cookie, err := c.Cookie(a.cookieName(c, secureAttempt, plainAttempt)); err == nil {
		if data, err := base64.RawURLEncoding.DecodeString(cookie.Value); err == nil {
			kept = string(data)
		}
	}
	a.keepAttempt(c, "")
	back := signin.Callback{
		Kept: kept, State: c.QueryParam("state"), Code: c.QueryParam("code"), Session: a.cookieOf(c),
	}
	who, err := a.SignIn.SignInOIDC(ctxOf(c), a.OIDC, back, a.from(c))
	if err != nil {
		a.Logger.InfoContext(ctxOf(c), "sign-in with the identity provider refused", "error", apperr.LogText(err))
		return c.Redirect(http.StatusFound, "/?error=oidc")
	}
	if err := a.begin(c, who); err != nil {
		return err
	}
	return c.Redirect(http.StatusFound, "/")
}
