package sqlite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
)

// This file has the passages of documents, and their search. The table passage_terms has a token for each term of a
// passage, which begins with the company: so no search reads what other companies have.

const passageColumns = `document_id, company_id, number, title, heading, address, text`

// searchedColumns are those of a passage with its embedding.
const searchedColumns = passageColumns + `, model, vector`

// examinedPassages bounds the passages that a search ranks, which takes some 2 µs for each.
const examinedPassages = 5000

const (
	// passagesOfTerm counts up to a bound, because it reads each of them.
	passagesOfTerm = `SELECT count(*) FROM (SELECT rowid FROM passage_terms WHERE passage_terms MATCH ? LIMIT ?)`
	// passagesWithTerm has an effect of its limit only for a single frequent term, whose passages differ little.
	passagesWithTerm = `SELECT rowid, bm25(passage_terms, ?, 1) FROM passage_terms WHERE passage_terms MATCH ? LIMIT ?`
	// totalsOfTerms has the number of rows that were ever inserted, as a variable-length integer, and then those of tokens
	// ("averages record" in SQLite's ext/fts5/fts5_index.c).
	totalsOfTerms = `SELECT block FROM passage_terms_data WHERE id = 1`
	passageOfKey  = `SELECT ` + searchedColumns + ` FROM passages WHERE key = ?`
)

const (
	termsOfDocument    = `DELETE FROM passage_terms WHERE rowid IN (SELECT key FROM passages WHERE document_id = ?)`
	passagesOfDocument = `DELETE FROM passages WHERE document_id = ?`
)

func readPassage(r *row) knowledge.Passage {
	return knowledge.Passage{
		DocumentID: r.text(), CompanyID: r.text(), Number: int(r.int()),
		Title: r.text(), Heading: r.text(), Address: r.text(), Text: r.text(),
	}
}

// readSearched reads a passage with its embedding.
func readSearched(r *row) knowledge.Passage {
	p := readPassage(r)
	p.Embedding.Model = r.text()
	if vector := r.bytes(); len(vector) > 0 {
		p.Embedding.Vector = vector
	}
	return p
}

// indexed is a passage with its tokens.
type indexed struct {
	knowledge.Passage
	heading, text string
}

func indexAll(passages []knowledge.Passage) []indexed {
	rows := make([]indexed, len(passages))
	for i, p := range passages {
		heading, text := store.PassageTerms(p)
		prefix := tokenPrefix(p.CompanyID)
		rows[i] = indexed{p, tokens(prefix, heading), tokens(prefix, text)}
	}
	return rows
}

// tokenPrefix returns the beginning of a company's tokens. All have one length, so that none is the beginning of
// another one with a term.
func tokenPrefix(companyID string) string {
	sum := sha256.Sum256([]byte(companyID))
	return hex.EncodeToString(sum[:16])
}

func tokens(prefix string, terms []string) string {
	var text strings.Builder
	for _, term := range terms {
		text.WriteString(token(prefix, term))
		text.WriteByte(' ')
	}
	return text.String()
}

// token returns the token of a term. The tokenizer takes small letters, digits and everything beyond ASCII as they are;
// other characters, which would separate tokens or be syntax in a query, become private ones of Unicode.
func token(prefix, term string) string {
	const private = 0xE000
	return prefix + strings.Map(func(r rune) rune {
		if r >= 0x80 || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return private + r
	}, term)
}

func insertPassage(c *conn, p indexed) error {
	_, err := c.insert(
		orFail, `passages`, passageColumns,
		p.DocumentID, p.CompanyID, p.Number, p.Title, p.Heading, p.Address, p.Text,
	)
	if err != nil {
		return err
	}
	_, err = c.insert(
		orFail, `passage_terms`, `rowid, heading, text`,
		c.LastInsertRowID(), p.heading, p.text,
	)
	return err
}

func deletePassages(c *conn, documentID string) error {
	if _, err := c.exec(termsOfDocument, documentID); err != nil {
		return err
	}
	_, err := c.exec(passagesOfDocument, documentID)
	return err
}

// SearchPassages implements [store.Documents].
func (s *Store) SearchPassages(
	ctx context.Context,
	companyID string,
	terms []string,
	limit int,
) ([]knowledge.Passage, error) {
	prefix := tokenPrefix(companyID)
	terms = store.SearchTerms(terms)
	return scan(ctx, s, "searching passages", func(c *conn) ([]knowledge.Passage, error) {
		counted := make([]store.TermCount, len(terms))
		for i, term := range terms {
			counted[i].Term = `"` + token(prefix, term) + `"`
			count := func(r *row) { counted[i].Passages = int(r.int()) }
			if _, err := c.first(passagesOfTerm, count, counted[i].Term, examinedPassages); err != nil {
				return nil, err
			}
		}
		scores, err := score(c, store.RarestTerms(counted, examinedPassages))
		if err != nil {
			return nil, err
		}
		best := slices.SortedFunc(maps.Keys(scores), func(a, b int64) int {
			return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
		})
		found := []knowledge.Passage{}
		for _, key := range best[:min(len(best), max(limit, 0), store.MaxPage)] {
			add := func(r *row) { found = append(found, readSearched(r)) }
			if _, err := c.first(passageOfKey, add, key); err != nil {
				return nil, err
			}
		}
		return found, nil
	})
}

// score returns the sums of BM25 over terms, by the keys of the passages that have one. SQLite weighs how rare a term
// is among the passages of all companies, deleted ones included; that is replaced by its rarity in the company.
func score(c *conn, terms []store.TermCount) (map[int64]float64, error) {
	scores := map[int64]float64{}
	inserted := 0
	if _, err := c.first(totalsOfTerms, func(r *row) { inserted = firstVarint(r.bytes()) }); err != nil {
		return nil, err
	}
	for _, t := range terms {
		weight := store.Rarity(t.Passages) / rarityAmong(inserted, t.Passages)
		err := c.query(passagesWithTerm, func(r *row) bool {
			scores[r.int()] -= weight * r.float() // bm25 is negative
			return true
		}, store.HeadingWeight, t.Term, examinedPassages)
		if err != nil {
			return nil, err
		}
	}
	return scores, nil
}

// rarityAmong returns how much SQLite counts a term that so many rows have
// (https://sqlite.org/fts5.html#the_bm25_function).
func rarityAmong(rows, withTerm int) float64 {
	with := float64(withTerm)
	return max(1e-6, math.Log((float64(rows)-with+0.5)/(with+0.5)))
}

// firstVarint returns the integer at the begin of a record: seven bits a byte, the highest first, up to a byte below
// 0x80.
func firstVarint(record []byte) (n int) {
	for _, b := range record {
		n = n<<7 | int(b&0x7F)
		if b < 0x80 {
			break
		}
	}
	return n
}
