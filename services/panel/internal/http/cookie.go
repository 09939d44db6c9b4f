package http

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
)

// cookie is one of the panel's cookies. Each is for all paths of this host, and no script reads it.
type cookie struct {
	secureName string // over https: browsers accept __Host- only so and for this host (RFC 6265bis, 4.1.3.2)
	plainName  string // over http, on a loopback address
	sameSite   http.SameSite
	maxAge     time.Duration
}

var (
	// sessionCookie holds the session's secret.
	sessionCookie = cookie{"__Host-parley-panel", "parley-panel", http.SameSiteLaxMode, account.SessionTTL}
	// deviceCookie lets the next sign-in recognise the device. It outlives the session.
	deviceCookie = cookie{"__Host-parley-device", "parley-device", http.SameSiteStrictMode, account.DeviceTTL}
	// attemptCookie holds a sign-in at the issuer until it ends (oidc.go).
	attemptCookie = cookie{"__Host-parley-panel-oidc", "parley-panel-oidc", http.SameSiteLaxMode, oidcTimeout}
)

func (a api) cookieName(c echo.Context, k cookie) string {
	if a.secure(c) {
		return k.secureName
	}
	return k.plainName
}

// cookie returns the value of a cookie; empty without one. Over https it accepts only the __Host- cookie, which no
// other host can set.
func (a api) cookie(c echo.Context, k cookie) string {
	found, err := c.Cookie(a.cookieName(c, k))
	if err != nil {
		return ""
	}
	return found.Value
}

// setCookie sets a cookie; an empty value deletes it.
func (a api) setCookie(c echo.Context, k cookie, value string) {
	set := &http.Cookie{
		Name:     a.cookieName(c, k),
		Value:    value,
		Path:     "/",
		HttpOnly: true,
		Secure:   a.secure(c),
		SameSite: k.sameSite,
		MaxAge:   int(k.maxAge.Seconds()),
	}
	if value == "" {
		set.MaxAge = -1
	}
	c.SetCookie(set)
}
