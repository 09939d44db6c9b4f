//go:build unix

package sqlite

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/knowledge"
)

// vocabulary returns words as often as content words are in texts: the most frequent one in a quarter of the passages.
func vocabulary() func() string {
	zipf := rand.NewZipf(rand.New(rand.NewSource(1)), 1.1, 50, 50_000)
	return func() string { return fmt.Sprintf("word%x", zipf.Uint64()) }
}

// fillPassages bypasses the writer, which bounds how long a caller waits, and the words' inflection.
func fillPassages(b *testing.B, s *Store, companyID string, n int, word func() string) {
	b.Helper()
	c, err := connect(s.path, writerSettings)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		b.Fatal(err)
	}
	prefix := tokenPrefix(companyID)
	for i := range n {
		terms := make([]string, 80)
		for j := range terms {
			terms[j] = word()
		}
		p := indexed{
			Passage: knowledge.Passage{
				DocumentID: fmt.Sprint(companyID, "-", i/100), CompanyID: companyID, Number: 1 + i%100,
				Text: strings.Join(terms, " the of "),
			},
			heading: tokens(prefix, terms[:4]),
			text:    tokens(prefix, terms[4:]),
		}
		if err := insertPassage(c, p); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := c.exec("COMMIT"); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSearchPassages searches 100,000 passages of one company for questions of one to sixteen words. Among them are
// the most frequent ones of the passages.
func BenchmarkSearchPassages(b *testing.B) {
	s, _, _ := benchStore(b, 1, 0)
	const company, passages = "company", 100_000
	word := vocabulary()
	fillPassages(b, s, company, passages, word)
	fillPassages(b, s, "other", passages/10, word)
	for _, words := range []int{1, 3, 6, 12, 16} {
		b.Run(fmt.Sprintf("words=%d", words), func(b *testing.B) {
			searchRandom(b, s, company, func() (terms []string) {
				for range words {
					terms = append(terms, word())
				}
				return terms
			})
		})
	}
	b.Run("most frequent", func(b *testing.B) {
		searchRandom(b, s, company, func() []string { return []string{"word0", "word1"} })
	})
	b.Run("company without any", func(b *testing.B) {
		searchRandom(b, s, "none", func() []string { return []string{"word0", "word1"} })
	})
}

// BenchmarkRankByMeaning searches 100,000 passages with vectors of 1,536 numbers, and ranks what is found as for a
// question of six words, without the call that embeds it.
func BenchmarkRankByMeaning(b *testing.B) {
	s, _, _ := benchStore(b, 1, 0)
	const company, passages, dimensions = "company", 100_000, 1536
	word := vocabulary()
	fillPassages(b, s, company, passages, word)
	c, err := connect(s.path, writerSettings)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := c.exec(`UPDATE passages SET model = 'm', vector = randomblob(?)`, dimensions); err != nil {
		b.Fatal(err)
	}
	question := knowledge.Embedding{Model: "m", Vector: make([]byte, dimensions)}
	question.Vector[0] = 127
	measure(b, func() {
		var terms []string
		for range 6 {
			terms = append(terms, word())
		}
		found, err := s.SearchPassages(b.Context(), company, terms, knowledge.Candidates)
		if err != nil {
			b.Fatal(err)
		}
		if ranked := knowledge.RankByMeaning(found, question, 5); len(ranked) > 5 {
			b.Fatalf("got %d passages, want 5", len(ranked))
		}
	})
}

func searchRandom(b *testing.B, s *Store, companyID string, question func() []string) {
	b.Helper()
	measure(b, func() {
		if _, err := s.SearchPassages(b.Context(), companyID, question(), 8); err != nil {
			b.Fatal(err)
		}
	})
}

// measure reports the median and the 95th percentile of the time of a search.
func measure(b *testing.B, search func()) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		search()
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
