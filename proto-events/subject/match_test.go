package subject_test

import (
	"testing"

	"github.com/parley-chat/parley/proto-events/subject"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	for filter, subjects := range map[string]map[string]bool{
		"a.b": {"a.b": true, "a": false, "a.b.c": false, "a.c": false},
		"a.*": {"a.b": true, "a": false, "a.b.c": false},
		"a.>": {"a.b": true, "a.b.c": true, "a": false, "b.a": false},
		">":   {"a": true, "a.b": true},
	} {
		for subj, want := range subjects {
			if got := subject.Matches(filter, subj); got != want {
				t.Errorf("%s and %s: got %v, want %v", filter, subj, got, want)
			}
		}
	}
}
