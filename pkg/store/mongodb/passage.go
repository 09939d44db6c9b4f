package mongodb

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

// This file searches passages. Services that are compatible with MongoDB differ in their text search, or have none, so
// passages are found by an index of their terms, and ranked here.

// examinedPassages bounds the passages that a search ranks: it reads some 2 KiB of terms for each, and no text.
const examinedPassages = 2000

// The parameters of BM25 are those that SQLite and Lucene have.
const (
	saturation    = 1.2  // k1: how fast a further occurrence of a term counts less
	normalization = 0.75 // b: how much less a term of a long passage counts
)

// passageDocument is a [knowledge.Passage] of one write of its document.
type passageDocument struct {
	ID         string   `bson:"_id"` // version|number
	DocumentID string   `bson:"documentId"`
	Revision   int64    `bson:"revision"` // of the document
	Version    string   `bson:"version"`
	CompanyID  string   `bson:"companyId"`
	Number     int      `bson:"number"`
	Title      string   `bson:"title"`
	Heading    string   `bson:"heading,omitempty"`
	Address    string   `bson:"address,omitempty"`
	Text       string   `bson:"text"`
	Terms      []string `bson:"terms"`            // different ones
	Weights    []int    `bson:"weights"`          // of the terms: how often each occurs, see store.HeadingWeight
	Length     int      `bson:"length"`           // in terms
	Model      string   `bson:"model,omitempty"`  // that has made the vector; empty: none
	Vector     []byte   `bson:"vector,omitempty"` // an int8 for each number
}

func passageDocumentOf(d knowledgeDocument, p knowledge.Passage) passageDocument {
	heading, text := store.PassageTerms(p)
	stored := passageDocument{
		ID: d.Version + "|" + strconv.Itoa(p.Number), DocumentID: d.ID, Revision: d.Revision, Version: d.Version,
		CompanyID: p.CompanyID, Number: p.Number, Title: p.Title, Heading: p.Heading, Address: p.Address, Text: p.Text,
		Length: len(heading) + len(text),
	}
	weights := map[string]int{}
	for _, term := range heading {
		weights[term] += store.HeadingWeight
	}
	for _, term := range text {
		weights[term]++
	}
	for term, weight := range weights {
		stored.Terms = append(stored.Terms, term)
		stored.Weights = append(stored.Weights, weight)
	}
	return stored
}

func (d passageDocument) passage() knowledge.Passage {
	return knowledge.Passage{
		DocumentID: d.DocumentID, CompanyID: d.CompanyID, Number: d.Number,
		Title: d.Title, Heading: d.Heading, Address: d.Address, Text: d.Text,
		Embedding: knowledge.Embedding{Model: d.Model, Vector: d.Vector},
	}
}

// passageFields are those that [passageDocument.passage] reads, and the version.
func passageFields() bson.D {
	return fieldsOf(
		"documentId", "version", "companyId", "number", "title", "heading", "address", "text", "model", "vector",
	)
}

// candidate is what ranks a passage.
type candidate struct {
	ID      string   `bson:"_id"`
	Terms   []string `bson:"terms"`
	Weights []int    `bson:"weights"`
	Length  int      `bson:"length"`
}

// SearchPassages implements [store.Documents]. It counts the passages of each term, reads the terms of those that have
// one of the rarest, and the texts of the best.
func (s *Store) SearchPassages(
	ctx context.Context,
	companyID string,
	terms []string,
	limit int,
) ([]knowledge.Passage, error) {
	ofThis := bson.E{Key: "companyId", Value: companyID}
	var counted []store.TermCount
	for _, term := range store.SearchTerms(terms) {
		n, err := s.countPassages(ctx, bson.D{ofThis, {Key: "terms", Value: term}}, examinedPassages)
		if err != nil {
			return nil, err
		}
		counted = append(counted, store.TermCount{Term: term, Passages: n})
	}
	chosen := store.RarestTerms(counted, examinedPassages)
	if len(chosen) == 0 || limit <= 0 {
		return []knowledge.Passage{}, nil
	}
	examined, err := s.candidates(ctx, ofThis, chosen)
	if err != nil {
		return nil, err
	}
	ranked := rank(examined, rarities(counted))
	limit = min(limit, store.MaxPage)
	found, err := s.passagesOf(ctx, ranked[:min(len(ranked), 2*limit)]) // some may be of another version
	return found[:min(len(found), limit)], err
}

// countPassages counts entries of an index up to a bound.
func (s *Store) countPassages(ctx context.Context, filter bson.D, bound int) (n int, err error) {
	pipeline := mongo.Pipeline{
		{{Key: "$match", Value: filter}},
		{{Key: "$limit", Value: bound}},
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
	}
	var counts []struct {
		Count int `bson:"count"`
	}
	err = s.do(ctx, "counting "+string(passages), func(ctx context.Context) error {
		cursor, err := s.in(passages).Aggregate(ctx, pipeline)
		if err != nil {
			return err
		}
		return cursor.All(ctx, &counts)
	})
	for _, c := range counts {
		n += c.Count
	}
	return n, err
}

// candidates reads what ranks the passages that have one of the terms.
func (s *Store) candidates(ctx context.Context, ofCompany bson.E, terms []store.TermCount) ([]candidate, error) {
	wanted := make([]string, len(terms))
	for i, t := range terms {
		wanted[i] = t.Term
	}
	q := listQuery{
		filter: bson.D{
			ofCompany,
			{Key: "terms", Value: bson.D{{Key: "$in", Value: wanted}}},
		},
		fields: fieldsOf("terms", "weights", "length"),
		limit:  examinedPassages,
	}
	return list(ctx, s, passages, q, func(c candidate) (candidate, bool) { return c, true })
}

// rarities returns what the terms count.
func rarities(counted []store.TermCount) map[string]float64 {
	rarity := make(map[string]float64, len(counted))
	for _, t := range counted {
		rarity[t.Term] = store.Rarity(t.Passages)
	}
	return rarity
}

// rank returns the ids of passages, those that fit the terms of a question best first.
func rank(examined []candidate, rarity map[string]float64) []string {
	total := 0
	for _, c := range examined {
		total += c.Length
	}
	average := max(1, float64(total)/float64(max(1, len(examined))))
	scores := make(map[string]float64, len(examined))
	ids := make([]string, len(examined))
	for i, c := range examined {
		ids[i] = c.ID
		scores[c.ID] = c.score(rarity, average)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	return ids
}

// score is the sum of BM25 over the terms of a question.
func (c candidate) score(rarity map[string]float64, average float64) (sum float64) {
	length := 1 - normalization + normalization*float64(c.Length)/average
	for i, term := range c.Terms {
		weight := float64(c.Weights[i])
		sum += rarity[term] * weight * (saturation + 1) / (weight + saturation*length)
	}
	return sum
}

// passagesOf reads passages in the order of their ids, without those that were removed meanwhile, and without those that
// are not of the stored version of their document: it is being written, or the process that wrote it was killed.
func (s *Store) passagesOf(ctx context.Context, ids []string) ([]knowledge.Passage, error) {
	q := listQuery{
		filter: bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}},
		fields: passageFields(),
	}
	found, err := list(ctx, s, passages, q, func(d passageDocument) (passageDocument, bool) { return d, true })
	if err != nil {
		return nil, err
	}
	versions, err := s.versionsOf(ctx, found)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b passageDocument) int {
		return cmp.Compare(slices.Index(ids, a.ID), slices.Index(ids, b.ID))
	})
	ordered := []knowledge.Passage{}
	for _, d := range found {
		if versions[d.DocumentID] == d.Version {
			ordered = append(ordered, d.passage())
		}
	}
	return ordered, nil
}

// versionsOf returns the stored versions of the documents of passages, by id.
func (s *Store) versionsOf(ctx context.Context, of []passageDocument) (map[string]string, error) {
	ids := make([]string, 0, len(of))
	for _, p := range of {
		ids = append(ids, p.DocumentID)
	}
	q := listQuery{
		filter: bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}},
		fields: fieldsOf("version"),
	}
	versions := map[string]string{}
	_, err := list(ctx, s, knowledgeDocuments, q, func(d knowledgeDocument) (struct{}, bool) {
		versions[d.ID] = d.Version
		return struct{}{}, true
	})
	return versions, err
}
