package apperr_test

import (
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCodeOf(t *testing.T) {
	t.Parallel()
	notFound := apperr.New(apperr.NotFound, "CHAT_NOT_FOUND", "Chat not found")
	for name, test := range map[string]struct {
		err  error
		want apperr.Code
	}{
		"nil":          {nil, apperr.Internal},
		"uncoded":      {errors.New("boom"), apperr.Internal},
		"coded":        {notFound, apperr.NotFound},
		"wrapped":      {fmt.Errorf("sending: %w", fmt.Errorf("loading: %w", notFound)), apperr.NotFound},
		"joined":       {errors.Join(errors.New("boom"), notFound), apperr.NotFound},
		"outermost":    {apperr.New(apperr.Conflict, "", "").Wrap(notFound), apperr.Conflict},
		"unavailable":  {apperr.Unreachable("NATS", errors.New("timeout")), apperr.Unavailable},
		"wrong fields": {apperr.Fields{{Name: "a", Message: "is required"}}.Err(), apperr.Invalid},
	} {
		if got := apperr.CodeOf(test.err); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		if got, want := apperr.Is(test.err, test.want), test.err != nil; got != want {
			t.Errorf("%s: Is(%s): got %v, want %v", name, test.want, got, want)
		}
	}
}

func TestIsReturnsFalseForNil(t *testing.T) {
	t.Parallel()
	if apperr.Is(nil, apperr.Internal) {
		t.Error("Is(nil, Internal): got true, want false")
	}
}

func TestWrapDoesNotModifyTheOriginal(t *testing.T) {
	t.Parallel()
	cause := errors.New("E11000")
	sentinel := apperr.New(apperr.Conflict, "DUPLICATE", "Already there")
	wrapped := sentinel.Wrap(cause)
	if sentinel.Err != nil {
		t.Errorf("original: got cause %v, want none", sentinel.Err)
	}
	if !errors.Is(wrapped, cause) || wrapped.Reason != "DUPLICATE" {
		t.Errorf("copy: got %+v, want the same error with the cause", wrapped)
	}
}

func TestErrorTextIncludesFieldsAndCause(t *testing.T) {
	t.Parallel()
	err := &apperr.Error{
		Message: "Validation failed",
		Fields:  []apperr.Field{{Name: "a", Message: "is required"}, {Name: "b", Message: "is too long"}},
		Err:     errors.New("cause"),
	}
	if got, want := err.Error(), "Validation failed; a is required; b is too long: cause"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnreachableHidesTheCauseFromTheCaller(t *testing.T) {
	t.Parallel()
	cause := errors.New("dial tcp: refused")
	err := apperr.Unreachable("MongoDB", cause)
	if err.RetryAfter <= 0 || err.Reason != "SERVICE_UNAVAILABLE" || !errors.Is(err, cause) {
		t.Errorf("got %+v, want a time to retry, the reason and the cause", err)
	}
	if got, want := err.Message, "Service is temporarily unavailable. Please try again."; got != want {
		t.Errorf("message: got %q, want %q", got, want)
	}
}

func TestFieldsAreReportedTogether(t *testing.T) {
	t.Parallel()
	var fields apperr.Fields
	if err := fields.Err(); err != nil {
		t.Errorf("no fields: got %v, want nil", err)
	}
	fields.Add("type", "is required")
	fields.Add("chatId", "must be a UUID")
	err, ok := errors.AsType[*apperr.Error](fields.Err())
	if !ok || err.Code != apperr.Invalid || err.Reason != "VALIDATION_ERROR" || len(err.Fields) != 2 {
		t.Fatalf("got %+v, want Invalid, VALIDATION_ERROR and two fields", err)
	}
	if got, want := err.Message, "Validation failed: type is required (1 more in details)"; got != want {
		t.Errorf("message: got %q, want %q", got, want)
	}
	if got, want := err.Error(), err.Message+"; chatId must be a UUID"; got != want {
		t.Errorf("text: got %q, want %q", got, want)
	}
	for range 1000 { // of a hostile body
		fields.Add("headers", "must have valid names")
	}
	if err, ok = errors.AsType[*apperr.Error](fields.Err()); !ok || len(err.Fields) != 50 {
		t.Errorf("a thousand fields: got %d in the error, want 50", len(err.Fields))
	}
}
