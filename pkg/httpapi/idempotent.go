package httpapi

import (
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/idempotency"
)

// ReplayedHeader is "true" on an answer that was made for an earlier request with the same key.
const ReplayedHeader = "Idempotency-Replayed"

// Idempotent answers requests that carry an Idempotency-Key.
type Idempotent struct{ Executor *idempotency.Executor }

// Answer answers a request that has the header: with what act returns, or with what was answered before.
func (i Idempotent) Answer(c echo.Context, scope, fingerprint string, act idempotency.Act) error {
	key, err := idempotency.KeyOf(c.Request().Header)
	if err != nil {
		return err
	}
	answer, err := i.Executor.Do(c.Request().Context(), idempotency.Request{Scope: scope, Key: key, Fingerprint: fingerprint}, act)
	if answer.Replayed {
		c.Response().Header().Set(ReplayedHeader, "true")
	}
	if err != nil {
		return err
	}
	return JSON(c, answer.Status, answer.Body)
}
