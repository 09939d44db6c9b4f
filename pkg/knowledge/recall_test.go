package knowledge_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/storetest"
)

const company = "company"

// question is an entry of testdata/questions.json: what a user of Parley asks, and the sections that have the answer.
type question struct {
	Question string `json:"question"`
	place
	Headings []string `json:"headings"` // in place of Heading: several sections of the document have it
	Also     []place  `json:"also"`     // sections of other documents that have it too
}

// place is a section of a document: its last heading.
type place struct {
	Document string `json:"document"`
	Heading  string `json:"heading"`
}

// words is an entry of testdata/words.json: what a language model has written to search with for a question, as a bot
// lets it. It was asked for all questions at once, and knew of Parley one sentence, no document and no ranking.
type words struct {
	Question string `json:"question"`
	Words    string `json:"words"`
}

// TestParleysOwnDocs asks Parley's own documents 200 questions. The questions were written before there was a ranking
// to look at, by what the sections say, in other words than theirs. It fails when cutting, terms or ranking become
// worse.
func TestParleysOwnDocs(t *testing.T) {
	documents := storetest.Open(t)
	questions := read[question](t, "questions.json")
	var all []knowledge.Passage
	for _, path := range documentPaths(questions) {
		d := readDocument(t, path)
		passages := knowledge.Cut(d)
		all = append(all, passages...)
		if err := documents.PutDocument(t.Context(), d, passages); err != nil {
			t.Fatal(err)
		}
	}
	written := map[string]string{}
	for _, w := range read[words](t, "words.json") {
		written[w.Question] = w.Words
	}
	for _, q := range questions {
		if !slices.ContainsFunc(all, q.isAnswered) {
			t.Errorf("no document has a section of %v for %q: has it got another heading?", q.places(), q.Question)
		}
		if written[q.Question] == "" {
			t.Errorf("no words for %q", q.Question)
		}
	}
	for _, test := range []struct {
		name  string
		words map[string]string
		least float64 // of the questions whose section is found
	}{
		{"the question alone", nil, 0.68},
		{"with words of a model", written, 0.89},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := 0
			for _, q := range questions {
				query := knowledge.Query{Question: q.Question, Words: test.words[q.Question]}
				if isFound(t, documents, q, query) {
					found++
				}
			}
			recall := float64(found) / float64(len(questions))
			t.Logf("the section is among %d passages for %.1f %% of %d questions", sent, 100*recall, len(questions))
			if recall < test.least {
				t.Errorf("got a recall of %.3f, want at least %.3f", recall, test.least)
			}
		})
	}
}

// sent is the number of passages that a bot gets.
const sent = 5

// isFound reports whether a search finds a section that answers a question.
func isFound(t *testing.T, documents store.Documents, q question, query knowledge.Query) bool {
	t.Helper()
	passages, err := documents.SearchPassages(t.Context(), company, query.Terms(), sent)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(passages, q.isAnswered) {
		return true
	}
	t.Logf("not found: %q in %v; terms %q; got:", q.Question, q.places(), query.Terms())
	for _, p := range passages {
		t.Logf("    %s %q", p.DocumentID, p.Heading)
	}
	return false
}

func read[V any](t *testing.T, file string) []V {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var values []V
	if err := json.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func documentPaths(questions []question) []string {
	var paths []string
	for _, q := range questions {
		paths = append(paths, q.Document)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func readDocument(t *testing.T, path string) knowledge.Document {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
	return knowledge.Document{
		ID:        path,
		CompanyID: company,
		Title:     title,
		Format:    knowledge.Markdown,
		Text:      string(text),
	}
}

// places returns the sections that answer a question.
func (q question) places() []place {
	places := slices.Clone(q.Also)
	for _, heading := range q.Headings {
		places = append(places, place{Document: q.Document, Heading: heading})
	}
	if q.Heading != "" {
		places = append(places, q.place)
	}
	return places
}

// isAnswered reports whether a passage is of a section that answers a question.
func (q question) isAnswered(p knowledge.Passage) bool {
	return slices.ContainsFunc(q.places(), func(w place) bool {
		isLead := p.Heading == "" && w.Heading == p.Title
		heading := strings.ReplaceAll(w.Heading, "`", "")
		isSection := strings.HasSuffix(" › "+p.Heading, " › "+heading)
		return p.DocumentID == w.Document && (isLead || isSection)
	})
}
