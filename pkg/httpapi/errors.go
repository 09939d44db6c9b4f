package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/idempotency"
)

// Problem is the body of every error response.
type Problem struct {
	StatusCode int            `json:"statusCode"`
	Code       string         `json:"code"` // a stable code
	Message    string         `json:"message"`
	Details    []apperr.Field `json:"details,omitzero"` // only for invalid fields, all of them at once
	RequestID  string         `json:"requestId"`
}

// Reasons of errors that come from HTTP itself; they refine a status, see statusOfReason.
const (
	ReasonMalformedJSON        = "MALFORMED_JSON"
	ReasonUnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
	ReasonPayloadTooLarge      = "PAYLOAD_TOO_LARGE"
	ReasonMethodNotAllowed     = "METHOD_NOT_ALLOWED"
	ReasonRouteNotFound        = "NOT_FOUND"
	ReasonOriginNotAllowed     = "ORIGIN_NOT_ALLOWED"
	ReasonRequestTimeout       = "REQUEST_TIMEOUT"
	ReasonRangeNotSatisfiable  = "RANGE_NOT_SATISFIABLE"
	ReasonPreconditionFailed   = "PRECONDITION_FAILED"
	ReasonFileQuotaExceeded    = "FILE_QUOTA_EXCEEDED"
	ReasonForbidden            = "FORBIDDEN"
	ReasonCSRF                 = "CSRF"
	ReasonTokenMissing         = "TOKEN_MISSING"
	ReasonWrongAuthScheme      = "WRONG_AUTH_SCHEME"
)

// statusClientGone is logged and counted if the caller disconnected before the response.
const statusClientGone = 499

// answerOf maps a code to its status, and to the default reason and message.
func answerOf(code apperr.Code) Problem {
	switch code {
	case apperr.Invalid:
		return Problem{StatusCode: http.StatusBadRequest, Code: "BAD_REQUEST", Message: "Bad request"}
	case apperr.Unauthenticated:
		return Problem{StatusCode: http.StatusUnauthorized, Code: "UNAUTHORIZED", Message: "Unauthorized"}
	case apperr.NotFound:
		return Problem{StatusCode: http.StatusNotFound, Code: "NOT_FOUND", Message: "Not found"}
	case apperr.Conflict:
		return Problem{StatusCode: http.StatusConflict, Code: "CONFLICT", Message: "Conflict"}
	case apperr.TooMany:
		return Problem{StatusCode: http.StatusTooManyRequests, Code: "TOO_MANY_REQUESTS", Message: "Too many requests"}
	case apperr.Unavailable:
		return Problem{StatusCode: http.StatusServiceUnavailable, Code: "SERVICE_UNAVAILABLE", Message: "Service unavailable"}
	}
	return Problem{StatusCode: http.StatusInternalServerError, Code: "INTERNAL_ERROR", Message: "Internal server error"}
}

// statusOfReason refines the status of an invalid request for reasons with an HTTP status of their own.
func statusOfReason(reason string, status int) int {
	switch reason {
	case ReasonUnsupportedMediaType:
		return http.StatusUnsupportedMediaType
	case ReasonPayloadTooLarge, ReasonFileQuotaExceeded:
		return http.StatusRequestEntityTooLarge
	case ReasonMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case idempotency.ReasonKeyReused:
		return http.StatusUnprocessableEntity
	case ReasonOriginNotAllowed, ReasonForbidden, ReasonCSRF:
		return http.StatusForbidden
	case ReasonRequestTimeout:
		return http.StatusRequestTimeout
	case ReasonRangeNotSatisfiable:
		return http.StatusRequestedRangeNotSatisfiable
	case ReasonPreconditionFailed:
		return http.StatusPreconditionFailed
	}
	return status
}

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
		return apperr.New(apperr.NotFound, ReasonRouteNotFound, "Route not found"), true
	case http.StatusMethodNotAllowed:
		return apperr.New(apperr.Invalid, ReasonMethodNotAllowed, "Method not allowed"), true
	case http.StatusRequestEntityTooLarge:
		return apperr.New(apperr.Invalid, ReasonPayloadTooLarge, "Request body is too large"), true
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
	p.RequestID = RequestID(ctx)
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
