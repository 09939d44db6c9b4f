package store

import (
	"cmp"
	"slices"

	"github.com/parley-chat/parley/pkg/knowledge"
)

// This file has what both engines do alike to search passages ([Documents]): the terms of a passage, and those of a
// question that a search uses.

const (
	// HeadingWeight is how often a term of a text has to occur to count as much as one of its headings or title.
	HeadingWeight = 4
	// maxSearchTerms bounds the terms of a search, each of which is counted. Questions of a visitor have fewer; a
	// text that is pasted has more.
	maxSearchTerms = 12
)

// PassageTerms returns the terms of a passage: those of its title and headings, and those of its text.
func PassageTerms(p knowledge.Passage) (heading, text []string) {
	return knowledge.Terms(p.Title + "\n" + p.Heading), knowledge.Terms(p.Text)
}

// SearchTerms returns the different terms of a question, at most as many as a search counts: the longest ones, which
// are rarer on average.
func SearchTerms(terms []string) []string {
	distinct := slices.Clone(terms)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	slices.SortStableFunc(distinct, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return distinct[:min(len(distinct), maxSearchTerms)]
}

// TermCount is a term, and the number of a company's passages that have it.
type TermCount struct {
	Term     string
	Passages int
}

// RarestTerms returns the rarest terms that together are in at most as many passages as a search may examine, and
// always one. A term that no passage has is left out. What is left out is too frequent to tell passages apart.
func RarestTerms(counted []TermCount, examined int) (chosen []TermCount) {
	rarest := slices.Clone(counted)
	slices.SortStableFunc(rarest, func(a, b TermCount) int { return cmp.Compare(a.Passages, b.Passages) })
	sum := 0
	for _, c := range rarest {
		sum += c.Passages
		if len(chosen) > 0 && sum > examined {
			break
		}
		if c.Passages > 0 {
			chosen = append(chosen, c)
		}
	}
	return chosen
}
