package store

import (
	"cmp"
	"math"
	"slices"

	"github.com/parley-chat/parley/pkg/knowledge"
)

// This file has what both engines do alike to search passages ([Documents]): the terms of a passage, those of a
// question that a search uses, and what each of them counts. The engines rank by BM25 with it.

const (
	// HeadingWeight is how often a term of a text has to occur to count as much as one of its headings or title.
	HeadingWeight = 4
	// maxSearchTerms bounds the terms of a search, each of which is counted. A question with the words that a model adds
	// has about as many; a text that is pasted has more.
	maxSearchTerms = 16
	// assumedPassages is the number of passages for which [Rarity] is that of BM25.
	assumedPassages = 10_000
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

// Rarity returns how much a term counts that so many passages of a company have. It is the logarithm that BM25 has, but
// as if each company had 10,000 passages: with the few hundred that most have, one rare word would count as much as
// three that belong to the subject, and the words that a model adds to a question are many, of which some are wrong.
func Rarity(passages int) float64 {
	return math.Log(1 + assumedPassages/(float64(passages)+0.5))
}
