package http

import (
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

func (a api) viewOfToken(t chat.AccessToken) view.Token { return view.TokenOf(t, a.Now()) }

func (a api) getTokens(c echo.Context, _ caller, company string) error {
	id := func(t chat.AccessToken) string { return t.Hash }
	return answerList(c, "tokens", recordsOf(a.Store.AccessTokens, company), id, a.viewOfToken, nil)
}

// token finds the token of a route.
func (a api) token(c echo.Context, who caller) (chat.AccessToken, error) {
	t, err := a.Store.AccessToken(ctxOf(c), c.Param("id"))
	if err == nil && !who.sees(t.CompanyID) {
		return chat.AccessToken{}, apperr.AccessTokenNotFound.New()
	}
	return t, err
}

type createTokenRequest struct {
	Name      string `json:"name"`
	ExpiresAt string `json:"expiresAt"`
}

func (a api) createToken(c echo.Context, who caller, company string, r createTokenRequest) (any, error) {
	var expires time.Time
	if r.ExpiresAt != "" {
		var err error
		expires, err = time.Parse(time.RFC3339, r.ExpiresAt)
		if err != nil {
			return nil, apperr.Fields{{Name: "expiresAt", Message: "must be a time such as 2027-01-31T12:00:00Z"}}.Err()
		}
	}
	secret, t, err := a.Admin.CreateToken(ctxOf(c), who.actor(), company, r.Name, expires)
	return created(map[string]any{"token": a.viewOfToken(t), "secret": secret}), err
}

type overlapRequest struct {
	OverlapSeconds int64 `json:"overlapSeconds"`
}

// overlap is bounded here so that it does not overflow; the operation validates it.
func (r overlapRequest) overlap() time.Duration {
	const year = 366 * 24 * 3600
	return time.Duration(max(-1, min(r.OverlapSeconds, year))) * time.Second
}

func (a api) rotateToken(c echo.Context, who caller, t chat.AccessToken, r overlapRequest) (any, error) {
	secret, fresh, replaced, err := a.Admin.RotateToken(ctxOf(c), who.actor(), t, r.overlap())
	return created(map[string]any{
		"token": a.viewOfToken(fresh), "secret": secret, "replaced": a.viewOfToken(replaced),
	}), err
}

func (a api) revokeToken(c echo.Context, who caller, t chat.AccessToken) (any, error) {
	t, err := a.Admin.RevokeToken(ctxOf(c), who.actor(), t.Hash)
	return a.viewOfToken(t), err
}
