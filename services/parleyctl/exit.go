package parleyctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/secret"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1 // an internal error, a declined confirmation, a failed check of doctor, or damaged messages
	ExitUsage       = 2 // the command line or a setting is wrong
	ExitNotFound    = 3
	ExitUnavailable = 4 // NATS or MongoDB is down
	ExitRefused     = 5 // the request is invalid, or not possible in this state
	ExitDrift       = 6 // streams or indexes differ from their declaration, and were only compared
)

// usageError is an error of the command line or of a setting.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usage(text string) error { return &usageError{text} }

// driftError means that streams differ from their declaration.
type driftError struct{ streams int }

func (e *driftError) Error() string {
	return fmt.Sprintf("%d streams differ from their declaration; `parleyctl streams apply` puts them right", e.streams)
}

// errDeclined means that the confirmation was declined.
var errDeclined = errors.New("nothing was done")

// exitCode is the one table from an error to the exit code.
func exitCode(err error) int {
	if err == nil || errors.Is(err, context.Canceled) {
		return ExitOK
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[*driftError](err); ok {
		return ExitDrift
	}
	if _, ok := errors.AsType[*secret.UnknownKeyError](err); ok {
		return ExitUsage
	}
	switch apperr.CodeOf(err) {
	case apperr.NotFound:
		return ExitNotFound
	case apperr.Unavailable, apperr.TooMany:
		return ExitUnavailable
	case apperr.Invalid, apperr.Conflict, apperr.Unauthenticated:
		return ExitRefused
	case apperr.Internal:
	}
	return ExitFailed
}

// describe returns an error as one line. For an error with a code it is the message and the field errors, and
// the cause if it adds information.
func describe(err error) string {
	text := err.Error()
	if unknown, ok := errors.AsType[*secret.UnknownKeyError](err); ok {
		text = unknown.Error()
	} else if e, ok := errors.AsType[*apperr.Error](err); ok && isForPeople(e.Code) {
		text = e.Message
		for i, f := range e.Fields {
			if i > 0 { // the message has the first
				text += "; " + f.Name + " " + f.Message
			}
		}
	}
	return clean(strings.TrimSpace(text))
}

// isForPeople reports whether the message of an error with this code is enough. An operator also needs the cause of the
// others.
func isForPeople(code apperr.Code) bool { return code != apperr.Internal && code != apperr.Unavailable }
