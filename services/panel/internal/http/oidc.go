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
	oidcPath = "/api/oidc"
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
	a.setCookie(c, attemptCookie, base64.RawURLEncoding.EncodeToString([]byte(keep)))
	return location, nil
}

// finishOIDC handles the redirect from the issuer. The state in the browser's cookie proves that this browser
// started the attempt.
func (a api) finishOIDC(c echo.Context) error {
	if a.OIDC == nil {
		return errNoOIDC
	}
	kept, err := base64.RawURLEncoding.DecodeString(a.cookie(c, attemptCookie))
	if err != nil {
		kept = nil // refused below
	}
	a.setCookie(c, attemptCookie, "")
	back := signin.Callback{
		Kept: string(kept), State: c.QueryParam("state"), Code: c.QueryParam("code"), Session: a.cookie(c, sessionCookie),
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
