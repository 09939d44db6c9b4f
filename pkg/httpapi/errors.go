package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
)

// Problem is the body of every error response.
type Problem struct {
	StatusCode int            `json:"statusCode"`
	Code       string         `json:"code"` // a stable code
	Message    string         `json:"message"`
	Details    []apperr.Field `json:"details,omitzero"` // what is wrong, field by field, all at once
	RequestID  string         `json:"requestId"`
}

// statusClientGone is logged and counted if the caller disconnected before the response.
const statusClientGone = 499

// answerOf maps a code to its status, and to the default reason and message.
func answerOf(code apperr.Code) Problem {
	switch code {
	case apperr.Invalid:
		return Problem{
			StatusCode: http.StatusBadRequest,
			Code:       apperr.BadRequest.Reason,
			Message:    apperr.BadRequest.Message,
		}
	case apperr.Unauthenticated:
		return Problem{
			StatusCode: http.StatusUnauthorized,
			Code:       apperr.Unauthorized.Reason,
			Message:    apperr.Unauthorized.Message,
		}
	case apperr.NotFound:
		return Problem{StatusCode: http.StatusNotFound, Code: apperr.RouteNotFound.Reason, Message: "Not found"}
	case apperr.Conflict:
		return Problem{StatusCode: http.StatusConflict, Code: "CONFLICT", Message: "Conflict"}
	case apperr.TooMany:
		return Problem{
			StatusCode: http.StatusTooManyRequests,
			Code:       apperr.TooManyRequests.Reason,
			Message:    "Too many requests",
		}
	case apperr.Unavailable:
		return Problem{
			StatusCode: http.StatusServiceUnavailable,
			Code:       apperr.ServiceUnavailable.Reason,
			Message:    "Service unavailable",
		}
	}
	return Problem{
		StatusCode: http.StatusInternalServerError,
		Code:       apperr.InternalError.Reason,
		Message:    apperr.InternalError.Message,
	}
}

// statusOfReason refines the status of an invalid request for reasons with an HTTP status of their own.
func statusOfReason(reason string, status int) int {
	switch reason {
	case apperr.UnsupportedMediaType.Reason:
		return http.StatusUnsupportedMediaType
	case apperr.PayloadTooLarge.Reason, apperr.FileQuotaExceeded.Reason:
		return http.StatusRequestEntityTooLarge
	case apperr.MethodNotAllowed.Reason:
		return http.StatusMethodNotAllowed
	case apperr.IdempotencyKeyReused.Reason:
		return http.StatusUnprocessableEntity
	case apperr.OriginNotAllowed.Reason, apperr.Forbidden.Reason, apperr.CSRF.Reason:
		return http.StatusForbidden
	case apperr.RequestTimeout.Reason:
		return http.StatusRequestTimeout
	case apperr.RangeNotSatisfiable.Reason:
		return http.StatusRequestedRangeNotSatisfiable
	case apperr.PreconditionFailed.Reason:
		return http.StatusPreconditionFailed
	}
	return status
}

// StatusOf returns the status of the response to an error.
func StatusOf(err error) int { return problemOf(err).StatusCode }

// problemOf maps an error to its response body.
func problemOf(err error) Problem {
	e, ok := asAppError(err)
	if !ok {
		return answerOf(apperr.Internal)
	}
	p := answerOf(e.Code)
	if p.StatusCode == http.StatusInternalServerError {
		return p // its text is only logged
	}
	if e.Code == apperr.Invalid {
		p.StatusCode = statusOfReason(e.Reason, p.StatusCode)
	}
	if e.Code == apperr.Invalid || e.Code == apperr.Unauthenticated {
		p.Details = e.Fields
	}
	if e.Reason != "" {
		p.Code = e.Reason
	}
	if e.Message != "" {
		p.Message = e.Message
	}
	return p
}

// asAppError finds the coded error in err; it converts errors of Echo and net/http.
func asAppError(err error) (*apperr.Error, bool) {
	if e, ok := errors.AsType[*apperr.Error](err); ok {
		return e, true
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit), true
	}
	if e, ok := errors.AsType[*echo.HTTPError](err); ok {
		return fromEcho(e)
	}
	return nil, false
}

func fromEcho(e *echo.HTTPError) (*apperr.Error, bool) {
	switch e.Code {
	case http.StatusNotFound:
		return apperr.RouteNotFound.New(), true
	case http.StatusMethodNotAllowed:
		return apperr.MethodNotAllowed.New(), true
	case http.StatusRequestEntityTooLarge:
		return apperr.PayloadTooLarge.New(), true
	case http.StatusUnsupportedMediaType:
		return unsupportedMediaType(), true
	case http.StatusUnauthorized:
		return &apperr.Error{Code: apperr.Unauthenticated}, true
	case http.StatusTooManyRequests:
		return &apperr.Error{Code: apperr.TooMany}, true
	case http.StatusServiceUnavailable:
		return &apperr.Error{Code: apperr.Unavailable}, true
	}
	if e.Code >= 400 && e.Code < 500 {
		return &apperr.Error{Code: apperr.Invalid}, true
	}
	return nil, false
}

// answer writes the error response, unless a response has been sent already.
func (r *requests) answer(c echo.Context, err error) {
	response, ctx := c.Response(), c.Request().Context()
	if response.Committed {
		return
	}
	p := problemOf(err)
	p.RequestID = event.RequestID(ctx)
	r.setHeaders(response.Header(), p.StatusCode, err)
	body, _ := json.Marshal(p) // strings and a number: always encodes
	_ = c.JSONBlob(p.StatusCode, body)
	if ctx.Err() != nil && p.StatusCode >= http.StatusInternalServerError && !isPanic(err) {
		// The error was most likely caused by the caller's disconnect, so it is not a server error.
		response.Status = statusClientGone
	}
}

func (r *requests) setHeaders(h http.Header, status int, err error) {
	switch status {
	case http.StatusUnauthorized:
		h.Set(echo.HeaderWWWAuthenticate, r.challenge)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(retrySeconds(err)))
	case http.StatusConflict:
		if waitsFor(err) > 0 { // the condition is temporary
			h.Set(echo.HeaderRetryAfter, strconv.Itoa(retrySeconds(err)))
		}
	case http.StatusRequestEntityTooLarge, http.StatusRequestTimeout:
		h.Set(echo.HeaderConnection, "close") // instead of reading the rest of the body
	}
}

// retrySeconds returns Retry-After in whole seconds, rounded up, at least one.
func retrySeconds(err error) int {
	return max(1, int((waitsFor(err)+time.Second-1)/time.Second))
}

func waitsFor(err error) time.Duration {
	if e, ok := errors.AsType[*apperr.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
