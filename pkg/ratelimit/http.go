package ratelimit

import (
	"cmp"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// Fields of draft-ietf-httpapi-ratelimit-headers (since its version 8), in net/http's spelling.
const (
	fieldPolicy = "Ratelimit-Policy" // "name";q=permits;w=seconds
	fieldLimit  = "Ratelimit"        // "name";r=permits left;t=seconds until all are back
)

func policyOf(cfg Config) string {
	return `"` + cfg.Name + `";q=` + strconv.Itoa(cfg.Rate.Count) + `;w=` + strconv.Itoa(seconds(cfg.Rate.Per))
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// Admit spends one of the caller's permits and sets the response's RateLimit fields. Its error is TooMany.
func (l *Limiter) Admit(c echo.Context, caller string) error { return l.AdmitN(c, caller, 1) }

// AdmitN is Admit for n permits, all or none.
func (l *Limiter) AdmitN(c echo.Context, caller string, n int) error {
	if l == nil {
		return nil
	}
	return l.tell(c, l.TakeN(c.Request().Context(), caller, n))
}

// Spend is AdmitN, but sets the RateLimit fields only on a refusal.
func (l *Limiter) Spend(c echo.Context, caller string, n int) error {
	if l == nil {
		return nil
	}
	if d := l.TakeN(c.Request().Context(), caller, n); !d.Allowed {
		return l.tell(c, d)
	}
	return nil
}

func (l *Limiter) tell(c echo.Context, d Decision) error {
	h := c.Response().Header()
	h[fieldPolicy] = append(h[fieldPolicy], l.policy)
	text := append(make([]byte, 0, 48), '"')
	text = append(append(text, l.cfg.Name...), `";r=`...)
	text = strconv.AppendInt(text, int64(d.Left), 10)
	text = strconv.AppendInt(append(text, `;t=`...), int64(seconds(d.Full)), 10)
	h[fieldLimit] = append(h[fieldLimit], string(text))
	if d.Allowed {
		return nil
	}
	e := cmp.Or(l.cfg.Refusal, apperr.TooManyRequests).New()
	e.RetryAfter = d.Wait
	return e
}

// ByAddress is a middleware that limits requests by the caller's address.
func (l *Limiter) ByAddress(next echo.HandlerFunc) echo.HandlerFunc {
	if l == nil {
		return next
	}
	return func(c echo.Context) error {
		if err := l.Admit(c, httpapi.ClientAddress(c)); err != nil {
			return err
		}
		return next(c)
	}
}

// Failed spends a permit of the request's address if err reports an invalid credential, and returns err, or TooMany if
// the address has failed too often. A request with a valid credential is never refused: other callers behind the same
// address, such as the pages of a company's network, cannot lock it out.
func (l *Limiter) Failed(c echo.Context, err error) error {
	if l == nil || !apperr.Is(err, apperr.Unauthenticated) {
		return err
	}
	if tooMany := l.Spend(c, httpapi.ClientAddress(c), 1); tooMany != nil {
		return tooMany
	}
	return err
}
