package ratelimit

import (
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// The fields of draft-ietf-httpapi-ratelimit-headers (since its version 8), in net/http's spelling.
const (
	fieldPolicy = "Ratelimit-Policy" // "name";q=permits;w=seconds
	fieldLimit  = "Ratelimit"        // "name";r=permits left;t=seconds until all are back
)

func policyOf(cfg Config) string {
	return `"` + cfg.Name + `";q=` + strconv.Itoa(cfg.Rate.Count) + `;w=` + strconv.Itoa(seconds(cfg.Rate.Per))
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// Admit spends one of the caller's permits and tells in the answer's RateLimit fields how many are left. Its error is TooMany.
func (l *Limiter) Admit(c echo.Context, caller string) error {
	if l == nil {
		return nil
	}
	return l.tell(c, l.Take(c.Request().Context(), caller))
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
	e := apperr.New(apperr.TooMany, "", "Too many requests. Please try again later.")
	e.RetryAfter = d.Wait
	return e
}

// ByAddress is a middleware that admits requests by the address that they come from.
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

// Blocked returns TooMany where the request's address has spent its permits, and spends none: together with Failed it bounds how
// often credentials may be guessed. It costs nothing as long as nobody fails.
func (l *Limiter) Blocked(c echo.Context) error {
	if l == nil || !l.used.Load() {
		return nil
	}
	d, refused := l.Refuses(httpapi.ClientAddress(c))
	if !refused {
		return nil
	}
	l.refused.Inc()
	return l.tell(c, d)
}

// Failed notes a request whose credential did not hold, if err says so, and returns err.
func (l *Limiter) Failed(c echo.Context, err error) error {
	if l != nil && apperr.Is(err, apperr.Unauthenticated) {
		l.Take(c.Request().Context(), httpapi.ClientAddress(c))
	}
	return err
}
