package idempotency

import (
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/httpapi"
)

// ReplayedHeader is "true" on an answer that was made for an earlier request with the same key.
const ReplayedHeader = "Idempotency-Replayed"

// Answer answers a request that has the header: with what act returns, or with what was answered before.
func (e *Executor) Answer(c echo.Context, scope, fingerprint string, act Act) error {
	key, err := KeyOf(c.Request().Header)
	if err != nil {
		return err
	}
	answer, err := e.Do(c.Request().Context(), Request{Scope: scope, Key: key, Fingerprint: fingerprint}, act)
	if answer.Replayed {
		c.Response().Header().Set(ReplayedHeader, "true")
	}
	if err != nil {
		return err
	}
	return httpapi.JSON(c, answer.Status, answer.Body)
}
