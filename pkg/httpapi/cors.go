package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	corsRequestHeaders = "Authorization, Content-Type, Idempotency-Key, X-Access-Token, X-Request-Id, Traceparent, " +
		"Range, If-Range, If-None-Match"
	corsResponseHeaders = "X-Request-Id, Retry-After, Link, Idempotency-Replayed, RateLimit, RateLimit-Policy, ETag, " +
		"Accept-Ranges, Content-Range, Content-Disposition, Parley-Unread, Parley-Read-Up-To, Parley-Seen-Up-To, Parley-Agents"
	corsMaxAge = "600" // seconds that a browser caches a preflight
)

// CORS lets pages of allowed origins call the API (Fetch standard, "CORS protocol"). Credentials such as cookies are
// never allowed; tokens are sent in headers. Preflights are answered here with 204 and reach no handler; they have
// neither token nor body, so allowed decides by origin and route only.
//
// Responses to other origins have no CORS headers, so the browser withholds them from the page. A handler
// that knows more about the caller may still reject the origin with [apperr.OriginNotAllowed]. The page may
// read that error, so that it can name the reason, but none of the response headers.
func CORS(allowed func(origin string, c echo.Context) bool) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			header, req := c.Response().Header(), c.Request()
			header.Add(echo.HeaderVary, echo.HeaderOrigin)
			origin := req.Header.Get(echo.HeaderOrigin)
			ok := origin != "" && allowed(origin, c)
			if ok {
				header.Set(echo.HeaderAccessControlAllowOrigin, origin)
			}
			asked := req.Header.Get(echo.HeaderAccessControlRequestMethod)
			if req.Method == http.MethodOptions && origin != "" && asked != "" {
				return answerPreflight(c, ok)
			}
			if ok {
				header.Set(echo.HeaderAccessControlExposeHeaders, corsResponseHeaders)
			}
			err := next(c)
			if e, known := errors.AsType[*apperr.Error](err); known && e.Reason == apperr.OriginNotAllowed.Reason {
				header.Del(echo.HeaderAccessControlExposeHeaders)
			}
			return err
		}
	}
}

func answerPreflight(c echo.Context, allowed bool) error {
	header := c.Response().Header()
	header.Add(echo.HeaderVary, echo.HeaderAccessControlRequestMethod)
	header.Add(echo.HeaderVary, echo.HeaderAccessControlRequestHeaders)
	if allowed {
		header.Set(echo.HeaderAccessControlAllowMethods, methodsOf(c))
		header.Set(echo.HeaderAccessControlAllowHeaders, corsRequestHeaders)
		header.Set(echo.HeaderAccessControlMaxAge, corsMaxAge)
	}
	return c.NoContent(http.StatusNoContent)
}

// methodsOf lists the methods that the router has for this path; OPTIONS itself needs no permission.
func methodsOf(c echo.Context) string {
	known, _ := c.Get(echo.ContextKeyHeaderAllow).(string)
	known = strings.TrimPrefix(known, "OPTIONS, ")
	if known == "" {
		return "GET, HEAD, POST"
	}
	return known
}
