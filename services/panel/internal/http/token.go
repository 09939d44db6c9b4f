package http

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/store"
)

func (a api) viewOfToken(t chat.AccessToken) view.Token { return view.TokenOf(t, a.Now()) }

func (a api) getTokens(c echo.Context, who caller) error {
	company, err := a.companyOf(c, who)
	if err != nil {
		return err
	}
	read := func(ctx context.Context, p store.Page) ([]chat.AccessToken, error) {
		return a.Store.AccessTokens(ctx, company, p)
	}
	found, next, err := readPage(c, read, func(t chat.AccessToken) string { return t.Hash })
	if err != nil {
		return err
	}
	return answerPage(c, next, map[string]any{"tokens": view.ListOf(found, a.viewOfToken)})
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
	unvalidated `json:"-"`
	Name        string `json:"name"`
	ExpiresAt   string `json:"expiresAt"`
}

func (a api) createToken(c echo.Context, who caller) error {
	company, err := a.companyOf(c, who)
	if err != nil {
		return err
	}
	var r createTokenRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	var expires time.Time
	if r.ExpiresAt != "" {
		if expires, err = time.Parse(time.RFC3339, r.ExpiresAt); err != nil {
			return apperr.Fields{{Name: "expiresAt", Message: "must be a time such as 2027-01-31T12:00:00Z"}}.Err()
		}
	}
	secret, t, err := a.Admin.CreateToken(ctxOf(c), who.actor(), company, r.Name, expires)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]any{"token": a.viewOfToken(t), "secret": secret})
}

type overlapRequest struct {
	unvalidated    `json:"-"`
	OverlapSeconds int64 `json:"overlapSeconds"`
}

// overlap is bounded here so that it does not overflow; the operation validates it.
func (r overlapRequest) overlap() time.Duration {
	const year = 366 * 24 * 3600
	return time.Duration(max(-1, min(r.OverlapSeconds, year))) * time.Second
}

func (a api) rotateToken(c echo.Context, who caller) error {
	var r overlapRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	t, err := a.token(c, who)
	if err != nil {
		return err
	}
	secret, fresh, replaced, err := a.Admin.RotateToken(ctxOf(c), who.actor(), t, r.overlap())
	if err != nil {
		return err
	}
	return c.JSON(
		http.StatusCreated,
		map[string]any{"token": a.viewOfToken(fresh), "secret": secret, "replaced": a.viewOfToken(replaced)},
	)
}

func (a api) revokeToken(c echo.Context, who caller) error {
	t, err := a.token(c, who)
	if err != nil {
		return err
	}
	if t, err = a.Admin.RevokeToken(ctxOf(c), who.actor(), t.Hash); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, a.viewOfToken(t))
}
