package ratelimit

import (
	"cmp"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// Header fields of draft-ietf-httpapi-ratelimit-headers (version 8 or later), in canonical Go form.
const (
	fieldPolicy = "Ratelimit-Policy" // "name";q=permits;w=seconds
	fieldLimit  = "Ratelimit"        // "name";r=permits left;t=seconds until all are available
)

func policyOf(cfg Config) string {
	return `"` + cfg.Name + `";q=` + strconv.Itoa(cfg.Rate.Count) + `;w=` + strconv.Itoa(seconds(cfg.Rate.Per))
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// Admit spends one of the caller's permits and sets the RateLimit fields of the response. It returns TooMany
// if none is left.
func (l *Limiter) Admit(c echo.Context, caller string) error { return l.AdmitN(c, caller, 1) }

// AdmitN is Admit for n permits, all or none.
func (l *Limiter) AdmitN(c echo.Context, caller string, n int) error {
	if l == nil {
		return nil
	}
	return l.respond(c, l.TakeN(c.Request().Context(), caller, n))
}

// Spend is AdmitN, but sets the RateLimit fields only if it refuses.
func (l *Limiter) Spend(c echo.Context, caller string, n int) error {
	if l == nil {
		return nil
	}
	if d := l.TakeN(c.Request().Context(), caller, n); !d.Allowed {
		return l.respond(c, d)
	}
	return nil
}

// Account is a caller of a limiter.
type Account struct {
	Limiter *Limiter
	Caller  string
}

// SpendAll spends a permit of each account, or none. The narrowest account comes first, so that its refusals do
// not touch the wider ones. giveBack returns the permits.
func SpendAll(c echo.Context, accounts ...Account) (giveBack func(), err error) {
	for i, a := range accounts {
		if err := a.Limiter.Spend(c, a.Caller, 1); err != nil {
			returnAll(accounts[:i])
			return nil, err
		}
	}
	return func() { returnAll(accounts) }, nil
}

func returnAll(accounts []Account) {
	for _, a := range accounts {
		a.Limiter.Return(a.Caller)
	}
}

func (l *Limiter) respond(c echo.Context, d Decision) error {
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

// CountFailure spends a permit of the client's address if err is Unauthenticated; a success or another error costs
// nothing. It returns err, or TooMany after too many failures from the address. Requests with a valid credential
// are never refused, so other clients with the same address (a company's network) cannot lock them out.
func (l *Limiter) CountFailure(c echo.Context, err error) error {
	if l == nil || !apperr.Is(err, apperr.Unauthenticated) {
		return err
	}
	if tooMany := l.Spend(c, httpapi.ClientAddress(c), 1); tooMany != nil {
		return tooMany
	}
	return err
}
