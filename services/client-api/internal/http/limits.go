package http

import (
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

// Limits bound how often the API may be called. A nil limiter does not limit.
type Limits struct {
	Token        *ratelimit.Limiter // by access token
	Keys         *ratelimit.Limiter // idempotency keys, by company
	AuthFailures *ratelimit.Limiter // by address
}

// admit charges a request with a valid access token. The limiter knows the token by its hash.
func (l Limits) admit(c echo.Context, secret string) error {
	if l.Token == nil {
		return nil
	}
	hash, _ := credential.HashAccessToken(secret)
	return l.Token.Admit(c, hash)
}

// key allows a company's request to add an idempotency key.
func (l Limits) key(c echo.Context, companyID string) idempotency.Permit {
	return func() (giveBack func(), err error) {
		return ratelimit.SpendAll(c, ratelimit.Account{Limiter: l.Keys, Caller: companyID})
	}
}
