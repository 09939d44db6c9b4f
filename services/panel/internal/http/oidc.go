package http

import (
	"encoding/base64"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	oidcPath = "/api/oidc"
	// oidcTimeout is the time limit of a sign-in at the issuer.
	oidcTimeout = 10 * time.Minute
)

var errNoOIDC = apperr.OIDCNotConfigured.New()

// startOIDC redirects the browser to the issuer.
func (a api) startOIDC(c echo.Context) error {
	if a.OIDC == nil {
		return errNoOIDC
	}
	location, keep, err := a.OIDC.Start(ctxOf(c))
	if err != nil {
		return err
	}
	a.setCookie(c, attemptCookie, base64.RawURLEncoding.EncodeToString([]byte(keep)))
	return c.Redirect(http.StatusFound, location)
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
	state := c.QueryParam("state")
	who, err := a.SignIn.SignInOIDC(ctxOf(c), a.OIDC, string(kept), state, c.QueryParam("code"), a.from(c))
	if err != nil {
		a.Logger.InfoContext(ctxOf(c), "sign-in with the identity provider refused", "error", apperr.LogText(err))
		return c.Redirect(http.StatusFound, "/?error=oidc")
	}
	if err := a.begin(c, who); err != nil {
		return err
	}
	return c.Redirect(http.StatusFound, "/")
}
