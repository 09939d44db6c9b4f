package knowledge_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/knowledge"
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

// TestParleysOwnDocs asks Parley's own documents 200 questions. The questions were written before there was a ranking
// to look at, by what the sections say, in other words than theirs. It fails when cutting, terms or ranking become
// worse.
func TestParleysOwnDocs(t *testing.T) {
	const (
		limit = 5 // passages that a bot reads
		// The questions are in other words than the answers, and this is what a search by words finds of them: 67 % of
		// five passages, 75 % of ten. Weights, shorter passages, parts of words and a list of synonyms change it by 2 %.
		wanted = 0.65
	)
	documents := storetest.Open(t)
	questions := readQuestions(t)
	var all []knowledge.Passage
	for _, path := range documentPaths(questions) {
		d := readDocument(t, path)
		passages := knowledge.Cut(d)
		all = append(all, passages...)
		if err := documents.PutDocument(t.Context(), d, passages); err != nil {
			t.Fatal(err)
		}
	}
	found, inDocument := 0, 0
	for _, q := range questions {
		if !slices.ContainsFunc(all, q.isAnswered) {
			t.Errorf("no document has a section of %v for %q: has it got another heading?", q.places(), q.Question)
		}
		terms := knowledge.Terms(q.Question)
		passages, err := documents.SearchPassages(t.Context(), company, terms, limit)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(passages, q.isOfDocument) {
			inDocument++
		}
		if slices.ContainsFunc(passages, q.isAnswered) {
			found++
			continue
		}
		t.Logf("not found: %q in %v; terms %q; got:", q.Question, q.places(), terms)
		for _, p := range passages {
			t.Logf("    %s %q", p.DocumentID, p.Heading)
		}
	}
	recall := float64(found) / float64(len(questions))
	t.Logf("the section is among %d passages for %.1f %% of %d questions, the document for %.1f %%",
		limit, 100*recall, len(questions), 100*float64(inDocument)/float64(len(questions)))
	if recall < wanted {
		t.Errorf("got a recall of %.3f, want at least %.3f", recall, wanted)
	}
}

func readQuestions(t *testing.T) []question {
	t.Helper()
	data, err := os.ReadFile("testdata/questions.json")
	if err != nil {
		t.Fatal(err)
	}
	var questions []question
	if err := json.Unmarshal(data, &questions); err != nil {
		t.Fatal(err)
	}
	return questions
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

func (q question) isOfDocument(p knowledge.Passage) bool {
	return slices.ContainsFunc(q.places(), func(w place) bool { return p.DocumentID == w.Document })
}
