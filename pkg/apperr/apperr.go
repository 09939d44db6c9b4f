// Package apperr defines Parley's error codes, the error type that carries them, and the catalogue of the
// errors that callers of the APIs can get (catalogue.go).
//
// A package wraps a failure into an [Error] where its meaning is known. Each protocol reads the code with [CodeOf] and
// maps it in one table: httpapi to a status, bus to ack, retry or DEAD. An error without a code is [Internal], and its
// text never reaches a client.
package apperr

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code classifies a failure, independent of the protocol.
type Code string

const (
	Invalid         Code = "invalid"         // the request or event is wrong, and retrying does not help
	Unauthenticated Code = "unauthenticated" // no credential, or an invalid one
	NotFound        Code = "not_found"       // the resource does not exist, or is not visible to this caller
	Conflict        Code = "conflict"        // already done
	TooMany         Code = "too_many"        // a limit of this caller is exceeded
	Unavailable     Code = "unavailable"     // a dependency is unavailable; the same call may succeed later
	Internal        Code = "internal"        // a server fault
)

// Error is a failure with a code. Message is for the API's caller and must not contain secrets or causes.
type Error struct {
	Code       Code
	Reason     string        // the code in the error body, for example CHAT_TOO_OLD; stable
	Message    string        // the sentence in the error body
	Fields     []Field       // what is wrong, field by field; only with Invalid and Unauthenticated
	RetryAfter time.Duration // how long to wait before a retry; zero: unspecified
	Err        error         // the cause, for the log only; may be nil
}

// Field says what is wrong with a field of a request, or what to do about it. Name is a path such as
// data.choices[1].title.
type Field struct {
	Name    string `json:"field"`
	Message string `json:"message"`
}

// New returns an error with a code, its reason and the message for the caller.
func New(code Code, reason, message string) *Error {
	return &Error{Code: code, Reason: reason, Message: message}
}

// Wrap returns a copy of e with cause, which is only logged.
func (e *Error) Wrap(cause error) *Error {
	c := *e
	c.Err = cause
	return &c
}

// Unreachable returns an [Unavailable] error: dependency (NATS, MongoDB, ...) does not respond because of cause.
func Unreachable(dependency string, cause error) *Error {
	return &Error{
		Code:       ServiceUnavailable.Code,
		Reason:     ServiceUnavailable.Reason,
		Message:    ServiceUnavailable.Message,
		RetryAfter: 2 * time.Second,
		Err:        fmt.Errorf("%s: %w", dependency, cause),
	}
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for i, f := range e.Fields {
		fault := f.Name + " " + f.Message
		if i > 0 || !strings.Contains(e.Message, fault) { // the message of [Fields.Err] has the first one
			b.WriteString("; " + fault)
		}
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the outermost [Error] in err's chain, or [Internal] if there is none. It never fails.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// ReasonOf returns the reason of err, or its code if it has none. The result contains no caller input.
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Reason != "" {
		return e.Reason
	}
	return string(CodeOf(err))
}

// LogText returns the text of err for logs and traces: the full text of internal and unavailable errors, otherwise only
// the public message, because the cause may contain caller input.
func LogText(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code == Internal || e.Code == Unavailable || e.Code == TooMany {
		return err.Error()
	}
	told := *e
	told.Err = nil
	return told.Error()
}

// Is reports whether err carries code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }

// Fields collects the invalid fields of a request, so that all of them are reported together.
type Fields []Field

// Add appends an invalid field.
func (f *Fields) Add(name, message string) { *f = append(*f, Field{Name: name, Message: message}) }

// maxFields bounds an error body: a hundred wrong elements of an array add nothing over the first few.
const maxFields = 50

// Err returns nil if no field was added, otherwise an [Invalid] error with the reason VALIDATION_ERROR and
// the first 50 fields. Its message names the first field, and the number of the others if there are more.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	f = f[:min(len(f), maxFields)]
	message := ValidationError.Message + ": " + f[0].Name + " " + f[0].Message
	if len(f) > 1 {
		message += fmt.Sprintf(" (%d more in details)", len(f)-1)
	}
	e := ValidationError.WithMessage(message)
	e.Fields = f
	return e
}
