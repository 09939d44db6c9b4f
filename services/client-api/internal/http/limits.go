package http

import (
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

// Limits bound how often the API may be called. A nil limiter does not limit.
type Limits struct {
	Token        *ratelimit.Limiter // by access token
	Keys         *ratelimit.Limiter // idempotency keys, by company
	Number       *ratelimit.Limiter // pushes, by company and phone number
	Chat         *ratelimit.Limiter // messages, by company and chat
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
	return permit(c, l.Keys, companyID)
}

// push allows a company's push to a phone number, however the number is written.
func (l Limits) push(c echo.Context, companyID, source string) idempotency.Permit {
	phone, _ := chat.ParsePhone(source)
	return permit(c, l.Number, companyID+"|"+strings.TrimPrefix(phone, "+"))
}

// message allows a company's message into a chat.
func (l Limits) message(c echo.Context, companyID, chatID string) idempotency.Permit {
	id, _ := chat.ParseID(chatID)
	return permit(c, l.Chat, companyID+"|"+id)
}

func permit(c echo.Context, l *ratelimit.Limiter, caller string) idempotency.Permit {
	return func() (giveBack func(), err error) {
		return ratelimit.SpendAll(c, ratelimit.Account{Limiter: l, Caller: caller})
	}
}
