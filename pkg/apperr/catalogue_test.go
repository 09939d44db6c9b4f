package apperr_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
)

// TestDefinitions: a code and a reason are defined once, in the form that the API documents promise.
func TestDefinitions(t *testing.T) {
	type key struct {
		code   apperr.Code
		reason string
	}
	seen := map[key]bool{}
	for _, d := range apperr.Definitions() {
		if k := (key{d.Code, d.Reason}); seen[k] {
			t.Errorf("got %s, %s twice", d.Code, d.Reason)
		} else {
			seen[k] = true
		}
		if !regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`).MatchString(d.Reason) || d.Message == "" {
			t.Errorf("got %q with the message %q, want a word in capitals and a message", d.Reason, d.Message)
		}
	}
	if len(seen) == 0 {
		t.Error("got no definitions")
	}
}

// TestDefinitionIsNotShared: what one caller adds to an error, no other one sees.
func TestDefinitionIsNotShared(t *testing.T) {
	cause := errors.New("cause")
	first := apperr.ChatNotFound.Wrap(cause)
	first.Message = "changed"
	second := apperr.ChatNotFound.New()
	if second.Message == "changed" || second.Err != nil || !errors.Is(first, cause) {
		t.Errorf("got %+v, want the definition", second)
	}
	if detailed := apperr.ChatNotFound.WithMessage("which one"); detailed.Message != "which one" || detailed.Reason != apperr.ChatNotFound.Reason || detailed.Code != apperr.NotFound {
		t.Errorf("got %+v, want the definition with another message", detailed)
	}
}
