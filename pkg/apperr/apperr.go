// Package apperr has the error codes, the error type that carries them, and the catalogue of all errors that callers of the APIs can get
// (catalogue.go).
//
// A package wraps a failure into an [Error] where its meaning is known. Each protocol reads the code with [CodeOf] and translates it in
// one table: httpapi to a status, bus to ack, retry or DEAD.
// An error without a code is [Internal], and its text never reaches a client.
package apperr

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code says what kind of failure an error is, whatever the protocol that it is answered in.
type Code string

const (
	Invalid         Code = "invalid"         // the request or event is wrong and stays wrong
	Unauthenticated Code = "unauthenticated" // no credential, or one that does not hold
	NotFound        Code = "not_found"       // the named thing does not exist, or not for this caller
	Conflict        Code = "conflict"        // already done
	TooMany         Code = "too_many"        // a limit of this caller is reached
	Unavailable     Code = "unavailable"     // something that we need is away; the same call may succeed later
	Internal        Code = "internal"        // a fault of ours
)

// Error is a failure with a code. Message is written for the caller of an API and must not hold secrets or causes.
type Error struct {
	Code       Code
	Reason     string        // the machine word in the error body, for example CHAT_TOO_OLD; stable
	Message    string        // the sentence in the error body
	Fields     []Field       // what is wrong with single fields; only with Invalid
	RetryAfter time.Duration // how long to wait before a retry; zero: not said
	// Ready closes when the work that was begun has ended and a call may fetch its result, which then is no new try; nil: no work goes
	// on. Only event consumers look at it, and wait no longer than RetryAfter.
	Ready <-chan struct{}
	// Final says that no retry will help, whatever the code. Only event consumers look at it.
	Final bool
	Err   error // the cause, for the log only; may be nil
}

// Field is one wrong field of a request. Name is a path such as data.choices[1].title.
type Field struct {
	Name    string `json:"field"`
	Message string `json:"message"`
}

// New returns an error with a code, its machine word and the sentence for the caller.
func New(code Code, reason, message string) *Error {
	return &Error{Code: code, Reason: reason, Message: message}
}

// Wrap returns a copy of e that carries cause for the log.
func (e *Error) Wrap(cause error) *Error {
	c := *e
	c.Err = cause
	return &c
}

// Away says that dependency (NATS, MongoDB, ...) does not answer, and why.
func Away(dependency string, cause error) *Error {
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
	for _, f := range e.Fields {
		b.WriteString("; " + f.Name + " " + f.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the outermost [Error] in err's chain, and [Internal] where there is none. It never fails.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// ReasonOf returns the machine word of err, and where it has none its code. It holds nothing that anybody sent.
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Reason != "" {
		return e.Reason
	}
	return string(CodeOf(err))
}

// LogText returns the text of err for logs and traces: the whole text of internal errors and outages, else only the public message,
// because the text of the cause could contain what a caller sent.
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

// Fields collects what is wrong with the fields of one request, so that all of it is answered at once.
type Fields []Field

// Add notes one wrong field.
func (f *Fields) Add(name, message string) { *f = append(*f, Field{Name: name, Message: message}) }

// Err returns nil when nothing was added, else an [Invalid] error with the reason VALIDATION_ERROR. Its message names the
// first field, so that a caller who reads only the message learns something.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	return &Error{
		Code:    ValidationError.Code,
		Reason:  ValidationError.Reason,
		Message: ValidationError.Message + ": " + f[0].Name + " " + f[0].Message,
		Fields:  f,
	}
}
