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
// request.
func (i Idempotent) Answer(c echo.Context, scope, fingerprint string, act idempotency.Act) error {
	key, err := idempotency.KeyOf(c.Request().Header)
	if err != nil {
		return err
	}
	answer, err := i.Executor.Do(
		c.Request().Context(),
		idempotency.Request{Scope: scope, Key: key, Fingerprint: fingerprint},
		act,
	)
	if answer.Replayed {
		c.Response().Header().Set(ReplayedHeader, "true")
	}
	if err != nil {
		return err
	}
	return JSON(c, answer.Status, answer.Body)
}
