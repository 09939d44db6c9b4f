package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

// document returns a document with everything that one may have.
func document(companyID string) knowledge.Document {
	text := "# Orders <é>\n\nA parcel arrives within days.\n\n# Payment\n\nWe accept cards" + Nul + " and vouchers."
	return knowledge.Document{
		ID: newID(), CompanyID: companyID, Title: "Guide <é>", Address: "https://example.com/guide",
		Format: knowledge.Markdown, Text: text, Bytes: len(text), Passages: 2, CreatedAt: at(0), UpdatedAt: at(time.Hour),
		Source: knowledge.Source{
			RefreshHours: 24, DueAt: at(time.Hour), FetchedAt: at(time.Minute), ETag: `W/"<é>"`, Modified: "yesterday",
			Failure:  knowledge.FetchFailure{Code: knowledge.FetchRefused, Message: "got 500 <é>", At: at(time.Second)},
			Failures: 3,
		},
	}
}

// passagesOf returns a passage of a document for each text.
func passagesOf(d knowledge.Document, texts ...string) []knowledge.Passage {
	all := make([]knowledge.Passage, len(texts))
	for i, text := range texts {
		all[i] = knowledge.Passage{
			DocumentID: d.ID, CompanyID: d.CompanyID, Number: i + 1, Title: d.Title, Address: d.Address, Text: text,
		}
	}
	return all
}

// find returns the numbers of the passages that a search finds, best first; those of other documents are negative.
func find(t *testing.T, s store.Store, d knowledge.Document, limit int, terms ...string) []int {
	t.Helper()
	numbers := []int{}
	for _, p := range get[[]knowledge.Passage](t)(s.SearchPassages(t.Context(), d.CompanyID, terms, limit)) {
		if p.DocumentID != d.ID {
			p.Number = -p.Number
		}
		numbers = append(numbers, p.Number)
	}
	return numbers
}

// ask returns what [find] returns for a question.
func ask(t *testing.T, s store.Store, d knowledge.Document, question string) []int {
	t.Helper()
	return find(t, s, d, store.MaxPage, knowledge.Terms(question)...)
}

func testDocuments(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	d := document(newID())
	_, err := s.Document(ctx, d.ID)
	wantReason(t, "an unknown document", err, apperr.NotFound, "DOCUMENT_NOT_FOUND")
	wantReason(t, "the deletion of one", s.DeleteDocument(ctx, d.ID), apperr.NotFound, "DOCUMENT_NOT_FOUND")
	must(t, s.PutDocument(ctx, d, passagesOf(d, "parcel", "voucher")))
	wantReason(t, "a second new one", s.PutDocument(ctx, d, nil), apperr.Conflict, "CHANGED_MEANWHILE")
	d.Revision = 1
	want(t, "a document", get[knowledge.Document](t)(s.Document(ctx, d.ID)), d)
	want(t, "a search after a conflict", ask(t, s, d, "voucher"), []int{2})

	d.Title, d.Text, d.Bytes, d.Passages, d.Address = "Changed", "Text", 4, 1, ""
	d.UpdatedAt = noon.Add(2 * time.Hour).In(time.FixedZone("", 3600))
	must(t, s.PutDocument(ctx, d, passagesOf(d, "ladder")))
	err = s.PutDocument(ctx, d, passagesOf(d, "hammer"))
	wantReason(t, "an update of an old revision", err, apperr.Conflict, "CHANGED_MEANWHILE")
	d.Revision, d.UpdatedAt = 2, at(2*time.Hour)
	want(t, "a changed document", get[knowledge.Document](t)(s.Document(ctx, d.ID)), d)
	want(t, "a passage of the change", ask(t, s, d, "ladder"), []int{1})
	want(t, "passages of before", ask(t, s, d, "parcel voucher guide"), []int{})
	want(t, "a passage of a change that came too late", ask(t, s, d, "hammer"), []int{})
	unknown := document(d.CompanyID)
	unknown.Revision = 7
	err = s.PutDocument(ctx, unknown, passagesOf(unknown, "hammer"))
	wantReason(t, "an update of an unknown document", err, apperr.Conflict, "CHANGED_MEANWHILE")
	want(t, "its passages", ask(t, s, d, "hammer"), []int{})

	other := document(d.CompanyID)
	must(t, s.PutDocument(ctx, other, passagesOf(other, "ladder")))
	foreign := document(newID())
	must(t, s.PutDocument(ctx, foreign, nil))
	other.Revision = 1
	listed := []knowledge.Document{d, other}
	listed[0].Text, listed[1].Text = "", ""
	slices.SortFunc(listed, func(a, b knowledge.Document) int { return strings.Compare(a.ID, b.ID) })
	list := func(companyID string, p store.Page) []knowledge.Document {
		t.Helper()
		return get[[]knowledge.Document](t)(s.Documents(ctx, companyID, p))
	}
	usage := func(companyID string) knowledge.Usage {
		t.Helper()
		return get[knowledge.Usage](t)(s.DocumentUsage(ctx, companyID))
	}
	want(t, "a company's documents", list(d.CompanyID, store.Page{}), listed)
	want(t, "a page", list(d.CompanyID, store.Page{After: listed[0].ID, Limit: 1}), listed[1:])
	want(t, "the documents of a company without any", list(newID(), store.Page{}), []knowledge.Document{})
	want(t, "a company's usage", usage(d.CompanyID), knowledge.Usage{Documents: 2, Bytes: int64(4 + other.Bytes)})
	want(t, "the usage of a company without documents", usage(newID()), knowledge.Usage{})

	must(t, s.DeleteDocument(ctx, d.ID))
	wantReason(t, "one that was deleted", s.DeleteDocument(ctx, d.ID), apperr.NotFound, "DOCUMENT_NOT_FOUND")
	wantReason(t, "a change of one", s.PutDocument(ctx, d, passagesOf(d, "hammer")), apperr.Conflict, "CHANGED_MEANWHILE")
	want(t, "the passages that are left", ask(t, s, d, "ladder hammer"), []int{-1})
	want(t, "the usage that is left", usage(d.CompanyID), knowledge.Usage{Documents: 1, Bytes: int64(other.Bytes)})
}

// testDocumentFetches has the queue of documents that are fetched: one of several claims succeeds, and a late result changes
// nothing.
func testDocumentFetches(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	first, second, byHand := document(newID()), document(newID()), document(newID())
	second.Source.DueAt = at(30 * time.Minute)
	byHand.Source = knowledge.Source{}
	for _, d := range []knowledge.Document{first, second, byHand} {
		must(t, s.PutDocument(ctx, d, passagesOf(d, "ladder")))
	}
	ours := []string{first.CompanyID, second.CompanyID, byHand.CompanyID}
	due := func(now time.Duration, limit int, except ...string) []knowledge.Due {
		t.Helper()
		found := get[[]knowledge.Due](t)(s.DueDocuments(ctx, at(now), except, limit))
		return slices.DeleteFunc(found, func(d knowledge.Due) bool { return !slices.Contains(ours, d.CompanyID) })
	}
	of := func(documents ...knowledge.Document) []knowledge.Due {
		all := []knowledge.Due{}
		for _, d := range documents {
			all = append(all, knowledge.Due{ID: d.ID, CompanyID: d.CompanyID})
		}
		return all
	}
	want(t, "due documents, longest due first", due(time.Hour, 100), of(second, first))
	want(t, "those that are due earlier", due(30*time.Minute, 100), of(second))
	want(t, "those without a company", due(time.Hour, 100, second.CompanyID), of(first))
	limited := get[[]knowledge.Due](t)(s.DueDocuments(ctx, at(time.Hour), nil, 1))
	want(t, "a limit", len(limited), 1)

	claims := together(t, 8, func(int) (bool, error) {
		d, claimed, err := s.ClaimDocument(ctx, first.ID, at(time.Hour), at(2*time.Hour))
		if claimed && (d.Text != first.Text || d.Revision != 1 || !d.Source.DueAt.Equal(at(2*time.Hour))) {
			err = fmt.Errorf("got %+v", d)
		}
		return claimed, err
	})
	want(t, "claims", count(claims), 1)
	want(t, "what is due after the claim", due(time.Hour, 100), of(second))
	want(t, "what is due when the lease has ended", due(2*time.Hour, 100), of(second, first))
	for _, id := range []string{byHand.ID, newID()} {
		_, claimed, err := s.ClaimDocument(ctx, id, at(time.Hour), at(2*time.Hour))
		must(t, err)
		want(t, "a claim of a text given by hand", claimed, false)
	}

	fetched := knowledge.Source{RefreshHours: 5, DueAt: at(7 * time.Hour), FetchedAt: at(time.Hour)}
	must(t, s.PutDocumentSource(ctx, first.ID, 1, fetched))
	first.Source, first.Revision = fetched, 1
	want(t, "a document with another source", get[knowledge.Document](t)(s.Document(ctx, first.ID)), first)
	want(t, "its passages", ask(t, s, first, "ladder"), []int{1})
	for _, late := range []struct {
		id       string
		revision int64
	}{{first.ID, 2}, {newID(), 1}} {
		err := s.PutDocumentSource(ctx, late.id, late.revision, second.Source)
		wantReason(t, "a late result", err, apperr.Conflict, "CHANGED_MEANWHILE")
	}
	want(t, "the source after it", get[knowledge.Document](t)(s.Document(ctx, first.ID)).Source, fetched)
	first.Source = knowledge.Source{}
	must(t, s.PutDocument(ctx, first, passagesOf(first, "hammer")))
	must(t, s.DeleteDocument(ctx, second.ID))
	want(t, "what is due of texts that are given by hand, and of deleted ones", due(9*time.Hour, 100), of())
}

// testDocumentRaces changes a document concurrently: one change wins, and its passages are those that are found.
func testDocumentRaces(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	d := document(newID())
	words := []string{"parcel", "voucher", "ladder", "hammer", "garden", "violin"}
	for range 4 {
		won := together(t, len(words), func(n int) (bool, error) {
			err := s.PutDocument(ctx, d, passagesOf(d, words[n], words[n]+" again"))
			if apperr.Is(err, apperr.Conflict) {
				return false, nil
			}
			return err == nil, err
		})
		want(t, "changes that won", count(won), 1)
		for n, word := range words {
			wanted := []int{}
			if won[n] {
				wanted = []int{1, 2}
			}
			found := ask(t, s, d, word)
			slices.Sort(found)
			want(t, "the passages of "+word, found, wanted)
		}
		d.Revision++
	}
}

func testSearch(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	d := document(newID())
	d.Title = "Manual"
	var texts []string
	for i := range 20 { // in all of them garden, in four violin, in one hammer
		text := "garden "
		if i%5 == 0 {
			text += "violin "
		}
		if i == 12 {
			text += "hammer "
		}
		texts = append(texts, text+strings.Repeat("carpet ", i%3))
	}
	passages := passagesOf(d, texts...)
	passages[8].Heading = "Orders › Returns"
	passages[9].Text += "returns"
	passages[9].Heading = "Orders › Windows"
	must(t, s.PutDocument(ctx, d, passages))

	all := get[[]knowledge.Passage](t)(s.SearchPassages(ctx, d.CompanyID, knowledge.Terms("a hammer"), 5))
	want(t, "the passage of one word", all, passages[12:13])
	want(t, "the first of a rare and a frequent word", ask(t, s, d, "garden hammer")[0], 13)
	want(t, "all of a rare and a frequent word", len(ask(t, s, d, "garden hammer")), len(texts))
	some := ask(t, s, d, "violin hammer garden")[:5]
	want(t, "the rarest word", some[0], 13)
	slices.Sort(some)
	want(t, "the rarer words", some, []int{1, 6, 11, 13, 16})
	rewritten := document(d.CompanyID)
	for range 30 {
		must(t, s.PutDocument(ctx, rewritten, passagesOf(rewritten, "violin")))
		rewritten.Revision++
	}
	must(t, s.DeleteDocument(ctx, rewritten.ID))
	want(t, "the rarest word after other documents have changed", ask(t, s, d, "violin hammer garden")[0], 13)
	want(t, "a word of a heading before one of a text", ask(t, s, d, "returns"), []int{9, 10})
	want(t, "a word of the title", len(ask(t, s, d, "manual")), len(texts))
	want(t, "a word that none has", ask(t, s, d, "piano"), []int{})
	want(t, "a limit", len(find(t, s, d, 3, knowledge.Terms("garden")...)), 3)
	want(t, "no limit", find(t, s, d, 0, knowledge.Terms("garden")...), []int{})
	repeated := slices.Repeat(knowledge.Terms("hammer"), 1000)
	want(t, "a word many times", find(t, s, d, 5, repeated...), []int{13})
	many := knowledge.Terms("hammer")
	for i := range 1000 {
		many = append(many, fmt.Sprintf("w%d", i%10))
	}
	want(t, "many terms", find(t, s, d, 5, many...), []int{13})

	longest := document(d.CompanyID)
	must(t, s.PutDocument(ctx, longest, passagesOf(
		longest, strings.Repeat("elephant ", 200), "elephant", strings.Repeat("giraffe ", 5)+"elephant",
	)))
	found := ask(t, s, longest, "giraffe elephant")
	want(t, "passages of different lengths", len(found), 3)
	want(t, "the one with both words", found[0], 3)
}

// testSearchOfOthers searches for words that only other companies have.
func testSearchOfOthers(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	ours := document(newID())
	theirs := document(newID())
	must(t, s.PutDocument(ctx, ours, passagesOf(ours, "parcel ladder")))
	must(t, s.PutDocument(ctx, theirs, passagesOf(theirs, "parcel hammer", theirs.CompanyID+" "+ours.CompanyID)))
	want(t, "a word of both", ask(t, s, ours, "parcel"), []int{1})
	want(t, "a word of both, for the other one", ask(t, s, theirs, "parcel"), []int{1})
	want(t, "a word of the other one", ask(t, s, ours, "hammer"), []int{})
	want(t, "a word of a company without documents", ask(t, s, document(newID()), "parcel"), []int{})
	for _, term := range []string{
		ours.CompanyID, theirs.CompanyID, `" OR "hammer`, `"hammer" OR "hammer"`, "x) OR (hammer", "x OR text:hammer",
	} {
		want(t, "the term "+term, find(t, s, ours, 9, term, "piano"), []int{})
	}
	must(t, s.DeleteDocument(ctx, ours.ID))
	want(t, "the words of the other one", ask(t, s, theirs, "parcel"), []int{1})
}

// testSearchTerms searches for terms that an engine might take for syntax: they are texts like all others.
func testSearchTerms(t *testing.T, open Opener) {
	s := open(t)
	d := document(newID())
	d.Title = "Manual"
	must(t, s.PutDocument(t.Context(), d, passagesOf(d, "parcel ladder")))
	hostile := []string{
		``, ` `, `"`, `""`, `"ladder`, `'`, `*`, `par*`, `parcel*`, `^parcel`, `-parcel`, `+`, `(`, `)`,
		`NEAR`, `NEAR(parcel ladder)`, `AND`, `OR`, `NOT`, `parcel AND ladder`, `parcel ladder`, `text:parcel`, `{text}:`, `$where`, `$`, `.`, `;`, `--`, `\`, `%`, Nul, "parcel" + Nul, "\n",
		"\xff", "é", "日本", "😀", strings.Repeat("x", 100_000), `{"$gt": ""}`,
	}
	for _, term := range hostile {
		want(t, fmt.Sprintf("the term %.30q", term), find(t, s, d, 9, term), []int{})
	}
	want(t, "no terms", find(t, s, d, 9), []int{})
	want(t, "all of them", find(t, s, d, 9, hostile...), []int{})
	with := append(knowledge.Terms("parcel"), hostile[:12]...)
	want(t, "some of them, and a word", find(t, s, d, 9, with...), []int{1})
}

// testCopiedPassages copies documents: the copy finds the passages into which they are cut, and no others.
func testCopiedPassages(t *testing.T, open Opener) {
	from, to, ctx := open(t), open(t), t.Context()
	d := document(newID())
	passages := knowledge.Cut(d)
	d.Passages = len(passages)
	must(t, from.PutDocument(ctx, d, passages))
	before := d
	must(t, to.PutDocument(ctx, before, passagesOf(before, "hammer")))
	before.Revision = 1
	must(t, to.PutDocument(ctx, before, passagesOf(before, "ladder")))
	must(t, to.WriteRecords(ctx, "documents", Records(t, from, "documents")))
	search := func(ctx context.Context, s store.Store, question string) []knowledge.Passage {
		t.Helper()
		return get[[]knowledge.Passage](t)(s.SearchPassages(ctx, d.CompanyID, knowledge.Terms(question), 9))
	}
	found := search(ctx, from, "parcel vouchers")
	if len(found) == 0 {
		t.Error("a search: got no passages, want some")
	}
	want(t, "a search in the copy", search(ctx, to, "parcel vouchers"), found)
	want(t, "passages of before in the copy", search(ctx, to, "hammer ladder"), []knowledge.Passage{})
	d.Revision = 1
	want(t, "the copy", get[knowledge.Document](t)(to.Document(ctx, d.ID)), d)
}
