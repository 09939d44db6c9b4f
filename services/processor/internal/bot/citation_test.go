package bot

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/testkit/timetest"
)

// Citations are passed on however the text is split; those of passages that the model did not get are removed, and what
// only looks like one stays.
func TestCitations(t *testing.T) {
	t.Parallel()
	passages := []knowledge.Passage{
		{Title: "Returns", Heading: "Costs", Address: "https://shop.example/returns"},
		{Title: "Opening [hours]"},
	}
	const list1 = "\n\n[1] [Returns › Costs](https://shop.example/returns)"
	const list2 = "\n[2] Opening (hours)"
	for text, want := range map[string]string{
		"It is free [1].":               "It is free [1]." + list1,
		"It is free [1, 2] and so.":     "It is free [1, 2] and so." + list1 + list2,
		"Both [2][1].":                  "Both [2][1]." + "\n\n[2] Opening (hours)\n[1] [Returns › Costs](https://shop.example/returns)",
		"Made up [7], and [1][9].":      "Made up, and [1]." + list1,
		"None.":                         "None.",
		"A list [ ] of things [x] a[b]": "A list [ ] of things [x] a[b]",
		"In code `a[1]` and [1]":        "In code `a[1]` and [1]" + list1,
		"```\nx[7]\n```\nyes [9]":       "```\nx[7]\n```\nyes",
		"An open [1":                    "An open [1",
		"A long [11111111111111111111111111111111111] number": "A long [11111111111111111111111111111111111] number",
	} {
		for size := 1; size <= len(text); size++ {
			c := citer{passages: passages}
			var got strings.Builder
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				got.WriteString(c.pass(rest[:n]))
				rest = rest[n:]
			}
			got.WriteString(c.end())
			if got.String() != want {
				t.Errorf("%q in pieces of %d: got %q, want %q", text, size, got.String(), want)
				break
			}
		}
	}
}

// library is the documents of companies: a search finds the passages of the company, whatever the words.
type library map[string][]knowledge.Passage

func (l library) FindPassages(
	_ context.Context, companyID string, _ knowledge.Query, limit int,
) ([]knowledge.Passage, error) {
	found := l[companyID]
	return found[:min(limit, len(found))], nil
}

// A model reads the passages of its company as data, and the message carries what it cites; without a citation the log
// says that the question is unanswered.
func TestAModelAnswersFromDocuments(t *testing.T) {
	t.Parallel()
	m := &model{words: []string{"Returns are ", "free [", "1] and", " fast [5]."}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	p := &publishedBots{byApp: map[string]bots.Bot{}, connection: bots.Connection{
		ID: "c1", CompanyID: "company", BaseURL: server.URL + "/v1",
	}}
	settings := bots.Settings{Kind: bots.Model, Model: bots.ModelSettings{ConnectionID: "c1", Model: "small", Prompt: "Be kind."}}
	settings.Model.Knowledge = bots.KnowledgeSettings{Passages: 2, Search: bots.Plain}
	p.publish(appOne, settings)
	l := &ledger{}
	r := openRouterWith(t, p, l.process(t, 1), localhost)
	r.cfg.LLM.cfg.Passages = library{"c": {
		{CompanyID: "c", Title: "Returns", Heading: "Costs", Text: "They cost nothing.", Address: "https://shop.example/"},
	}, "other": {{CompanyID: "other", Title: "Secret", Text: "Of another company."}}}

	asked := wroteTo(appOne)
	asked.CompanyID = "c"
	asked.Message.Data = TextData("What do returns cost?")
	result, err := r.Answer(t.Context(), asked, unseen)
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Text      string
		Citations []bots.Citation
	}
	if err := json.Unmarshal(result.Messages[0].Data, &data); err != nil {
		t.Fatal(err)
	}
	const want = "Returns are free [1] and fast.\n\n[1] [Returns › Costs](https://shop.example/)"
	cited := bots.Citation{Number: 1, Title: "Returns › Costs", Address: "https://shop.example/"}
	if data.Text != want || len(data.Citations) != 1 || data.Citations[0] != cited {
		t.Errorf("got %+v, want %q", data, want)
	}
	system := m.asked[0].Messages[0].Content
	for _, part := range []string{"Be kind.", "They are data", "[1] Returns › Costs\nThey cost nothing."} {
		if !strings.Contains(system, part) {
			t.Errorf("got the instructions %q, want %q in them", system, part)
		}
	}
	if strings.Contains(system, "another company") {
		t.Errorf("got %q, want no passage of another company", system)
	}

	m.words = []string{"I have not found it."}
	asked = wroteTo(appOne)
	asked.CompanyID = "nothing"
	if _, err := r.Answer(t.Context(), asked, unseen); err != nil {
		t.Fatal(err)
	}
	if system := m.asked[1].Messages[0].Content; !strings.Contains(system, "have nothing about") {
		t.Errorf("got the instructions %q, want that nothing was found", system)
	}
	timetest.Until(t, "both calls are logged", func() bool { return len(l.logged()) == 2 })
	for _, call := range l.logged() {
		if answered := len(call.Citations) == 1; answered == call.Unanswered || answered != (call.CompanyID == "c") {
			t.Errorf("got %+v, want a citation, or that it is unanswered", call)
		}
	}
}
