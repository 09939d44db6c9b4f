package http

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/httpapi"
)

// What handlers have in common: they decode the body, find the company or the record of the route, make one
// call, and encode what it returns. routes.go names the parts of each.

// handler answers a request of a user.
type handler = func(c echo.Context, who caller) error

// answered is an answer with another status than 200.
type answered struct {
	status int
	body   any
}

func created(body any) answered { return answered{http.StatusCreated, body} }

// answer encodes what a handler returns: nothing, a body, or an [answered].
func answer(c echo.Context, body any, err error) error {
	if err != nil {
		return err
	}
	switch v := body.(type) {
	case nil:
		return c.NoContent(http.StatusNoContent)
	case answered:
		return answerJSON(c, v.status, v.body)
	}
	return answerJSON(c, http.StatusOK, body)
}

// decoded decodes the body of a request.
func decoded[B any](c echo.Context) (body B, err error) {
	err = httpapi.Decode(c, &body)
	return body, err
}

// take handles a request with a body.
func take[B any](handle func(c echo.Context, who caller, body B) (any, error)) handler {
	return func(c echo.Context, who caller) error {
		body, err := decoded[B](c)
		if err != nil {
			return err
		}
		v, err := handle(c, who, body)
		return answer(c, v, err)
	}
}

// on handles a request about what find returns: the company or the record of the route.
func on[R any](
	find func(c echo.Context, who caller) (R, error), handle func(c echo.Context, who caller, found R) (any, error),
) handler {
	return func(c echo.Context, who caller) error {
		found, err := find(c, who)
		if err != nil {
			return err
		}
		v, err := handle(c, who, found)
		return answer(c, v, err)
	}
}

// change handles a request with a body about what find returns.
func change[B, R any](
	find func(c echo.Context, who caller) (R, error),
	handle func(c echo.Context, who caller, found R, body B) (any, error),
) handler {
	return func(c echo.Context, who caller) error {
		body, err := decoded[B](c)
		if err != nil {
			return err
		}
		found, err := find(c, who)
		if err != nil {
			return err
		}
		v, err := handle(c, who, found, body)
		return answer(c, v, err)
	}
}

// list handles a request for a page of what belongs to what find returns; page answers it.
func list[R any](
	find func(c echo.Context, who caller) (R, error), page func(c echo.Context, who caller, found R) error,
) handler {
	return func(c echo.Context, who caller) error {
		found, err := find(c, who)
		if err != nil {
			return err
		}
		return page(c, who, found)
	}
}
