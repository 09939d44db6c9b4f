package storetest

import (
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

func testKnowledgeSettings(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	read := func(companyID string) knowledge.Settings {
		t.Helper()
		return get[knowledge.Settings](t)(s.KnowledgeSettings(ctx, companyID))
	}
	claim := func(companyID string, ended time.Time, w knowledge.Work) bool {
		t.Helper()
		return get[bool](t)(s.ClaimEmbedding(ctx, companyID, ended, w))
	}
	settings := knowledge.Settings{CompanyID: newID(), ConnectionID: newID(), Model: "small <é>"}
	unchanged := knowledge.Settings{CompanyID: settings.CompanyID}
	want(t, "settings that were never changed", read(settings.CompanyID), unchanged)
	want(t, "a claim of them", claim(settings.CompanyID, noon, knowledge.Work{Until: noon}), false)
	must(t, s.PutKnowledgeSettings(ctx, settings))
	err := s.PutKnowledgeSettings(ctx, settings)
	wantReason(t, "a second new one", err, apperr.Conflict, "CHANGED_MEANWHILE")
	settings.Revision = 1
	want(t, "settings", read(settings.CompanyID), settings)

	work := knowledge.Work{Until: at(time.Minute)}
	want(t, "a claim", claim(settings.CompanyID, at(0), work), true)
	want(t, "a second claim", claim(settings.CompanyID, at(0), work), false)
	want(t, "a claim before the end", claim(settings.CompanyID, at(time.Minute-time.Millisecond), work), false)
	failed := work.Failed("no answer <é>", at(time.Hour))
	want(t, "the end of the first", claim(settings.CompanyID, at(time.Minute), failed), true)
	settings.Work = failed
	want(t, "settings after a failure", read(settings.CompanyID), settings)
	want(t, "a claim after the wait", claim(settings.CompanyID, at(time.Hour), knowledge.Work{}), true)
	settings.Work = knowledge.Work{}
	want(t, "settings without work", read(settings.CompanyID), settings)

	want(t, "one more claim", claim(settings.CompanyID, at(0), work), true)
	settings.ConnectionID, settings.Model = "", ""
	must(t, s.PutKnowledgeSettings(ctx, settings))
	want(t, "an end after a change", claim(settings.CompanyID, at(0), work), true)
	must(t, s.PutKnowledgeSettings(ctx, knowledge.Settings{CompanyID: newID()}))
	listed := get[[]knowledge.Settings](t)(s.AllKnowledgeSettings(ctx, store.Page{}))
	want(t, "the settings of all companies", len(listed), 2)
	want(t, "a page of them", get[[]knowledge.Settings](t)(
		s.AllKnowledgeSettings(ctx, store.Page{After: listed[0].CompanyID, Limit: 1})), listed[1:])
}

func testEmbeddings(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	const model = "small https://models.example/v1"
	unembedded := func(companyID, model string) []knowledge.Passage {
		t.Helper()
		return get[[]knowledge.Passage](t)(s.UnembeddedPassages(ctx, companyID, model, 9))
	}
	progress := func(companyID, model string) knowledge.Progress {
		t.Helper()
		return get[knowledge.Progress](t)(s.EmbeddingProgress(ctx, companyID, model))
	}
	search := func(companyID, question string) []knowledge.Passage {
		t.Helper()
		return get[[]knowledge.Passage](t)(s.SearchPassages(ctx, companyID, knowledge.Terms(question), 9))
	}
	d, foreign := document(newID()), document(newID())
	cut := passagesOf(d, "parcel", "voucher")
	cut[1].Heading = "Payment"
	must(t, s.PutDocument(ctx, d, cut))
	must(t, s.PutDocument(ctx, foreign, passagesOf(foreign, "parcel", "voucher")))
	want(t, "the progress at first", progress(d.CompanyID, model), knowledge.Progress{Passages: 2})
	want(t, "that of a company without documents", progress(newID(), model), knowledge.Progress{})
	found := unembedded(d.CompanyID, model)
	want(t, "passages without embeddings", len(found), 2)
	want(t, "some of them", len(get[[]knowledge.Passage](t)(s.UnembeddedPassages(ctx, d.CompanyID, model, 1))), 1)

	for i := range found {
		found[i].Embedding = knowledge.Embedding{Model: model, Vector: []byte{0, 1, 0x7F, 0x80, 0xFF, byte(found[i].Number)}}
	}
	must(t, s.PutEmbeddings(ctx, found))
	must(t, s.PutEmbeddings(ctx, nil))
	for i := range cut {
		cut[i].Embedding = knowledge.Embedding{Model: model, Vector: []byte{0, 1, 0x7F, 0x80, 0xFF, byte(cut[i].Number)}}
		want(t, "a search", search(d.CompanyID, cut[i].Text), cut[i:i+1])
	}
	want(t, "passages without embeddings then", unembedded(d.CompanyID, model), []knowledge.Passage{})
	want(t, "the progress then", progress(d.CompanyID, model), knowledge.Progress{Passages: 2, Embedded: 2})
	want(t, "the progress of another model", progress(d.CompanyID, "large"), knowledge.Progress{Passages: 2})
	want(t, "passages without those of another model", len(unembedded(d.CompanyID, "large")), 2)
	want(t, "the progress of another company", progress(foreign.CompanyID, model), knowledge.Progress{Passages: 2})

	// A document that was written meanwhile has other passages with the same numbers.
	d.Revision = 1
	next := passagesOf(d, "parcel", "ladder")
	must(t, s.PutDocument(ctx, d, next))
	want(t, "the progress after a change", progress(d.CompanyID, model), knowledge.Progress{Passages: 2})
	must(t, s.PutEmbeddings(ctx, cut))
	want(t, "the progress after a write of before", progress(d.CompanyID, model), knowledge.Progress{Passages: 2, Embedded: 1})
	want(t, "a passage of the change", search(d.CompanyID, "ladder"), next[1:])
	must(t, s.DeleteDocument(ctx, d.ID))
	must(t, s.PutEmbeddings(ctx, cut))
	want(t, "the progress after the deletion", progress(d.CompanyID, model), knowledge.Progress{})
}
