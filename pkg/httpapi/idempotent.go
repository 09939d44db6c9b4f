package httpapi

import (
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/idempotency"
)

// ReplayedHeader is "true" on a response that was created for an earlier request with the same key.
const ReplayedHeader = "Idempotency-Replayed"

// Idempotent answers requests that have an Idempotency-Key.
type Idempotent struct{ Executor *idempotency.Executor }

// Answer answers a request that has the header: with the result of act, or with the stored response of an earlier
// request. The header is the request's Key.
func (i Idempotent) Answer(c echo.Context, r idempotency.Request, act idempotency.Act) (err error) {
	if r.Key, err = idempotency.KeyOf(c.Request().Header); err != nil {
		return err
	}
	answer, err := i.Executor.Do(c.Request().Context(), r, act)
	if answer.Replayed {
		c.Response().Header().Set(ReplayedHeader, "true")
	}
	if err != nil {
		return err
	}
	return JSON(c, answer.Status, answer.Body)
}
