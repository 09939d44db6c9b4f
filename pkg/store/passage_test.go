package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-chat/parley/pkg/store"
)

func TestSearchTerms(t *testing.T) {
	t.Parallel()
	got := store.SearchTerms([]string{"b", "long", "b", "a"})
	if want := []string{"long", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	many := []string{"longest"}
	for i := range 1000 {
		many = append(many, fmt.Sprint(i))
	}
	got = store.SearchTerms(many)
	if len(got) != 16 || got[0] != "longest" || got[1] != "100" {
		t.Errorf("got %v, want the 16 longest", got)
	}
}

func TestRarestTerms(t *testing.T) {
	t.Parallel()
	rare := store.TermCount{Term: "r", Passages: 3}
	frequent := store.TermCount{Term: "f", Passages: 8}
	unknown := store.TermCount{Term: "u"}
	for _, test := range []struct {
		counted  []store.TermCount
		examined int
		want     []store.TermCount
	}{
		{nil, 10, nil},
		{[]store.TermCount{unknown}, 10, nil},
		{[]store.TermCount{frequent, unknown, rare}, 11, []store.TermCount{rare, frequent}},
		{[]store.TermCount{frequent, rare}, 10, []store.TermCount{rare}},
		{[]store.TermCount{unknown, frequent}, 5, []store.TermCount{frequent}},
	} {
		if got := store.RarestTerms(test.counted, test.examined); !slices.Equal(got, test.want) {
			t.Errorf("%v, examining %d: got %v, want %v", test.counted, test.examined, got, test.want)
		}
	}
}
