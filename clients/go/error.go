package parley

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Error is an unsuccessful response. Use Code in programs; Message is for people.
type Error struct {
	StatusCode int
	Code       string // empty if the response did not come from Parley but, for example, from a proxy
	Message    string
	Details    []ErrorField // one for each invalid field
	RequestID  string       // for support requests to the operator
}

// ErrorField is an invalid field of the request.
type ErrorField struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("parley: the server responded with %d", e.StatusCode)
	}
	return fmt.Sprintf("parley: %d %s: %s (request %s)", e.StatusCode, e.Code, e.Message, e.RequestID)
}

// maxErrorBody bounds how much of an error body is read.
const maxErrorBody = 1 << 20

func errorOf(resp *http.Response) *Error {
	defer func() { _ = resp.Body.Close() }()
	e := &Error{StatusCode: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id")}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return e
	}
	var body struct {
		Code      string       `json:"code"`
		Message   string       `json:"message"`
		Details   []ErrorField `json:"details"`
		RequestID string       `json:"requestId"`
	}
	if json.Unmarshal(text, &body) != nil || body.Code == "" {
		return e
	}
	e.Code, e.Message, e.Details = body.Code, body.Message, body.Details
	if body.RequestID != "" {
		e.RequestID = body.RequestID
	}
	return e
}
