package knowledge

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
)

// This file has the ranking by meaning: a language model turns passages and questions into vectors, their embeddings,
// and those of texts with a similar meaning have a similar direction.

const (
	// Candidates is how many of the passages that a search by words has found are ranked by meaning.
	Candidates = 50
	// MaxDimensions bounds the vectors: those of the largest models have 4,096 numbers.
	MaxDimensions = 8192
	maxModel      = 200 // characters
	// maxFailure bounds the text of a failure, in bytes.
	maxFailure = 500
)

// Settings are how the documents of a company are searched.
type Settings struct {
	CompanyID string `json:"-"`
	// ConnectionID and Model make the embeddings; empty: passages are ranked by words alone.
	ConnectionID string `json:"connectionId,omitempty"`
	Model        string `json:"model,omitempty"`
	Revision     int64  `json:"-"` // incremented by each update; 0: not stored

	Work Work `json:"-"` // of the processors; a change of the settings removes it
}

// Work is the state of making the embeddings of a company's passages.
type Work struct {
	// Until is how long a processor makes embeddings, or all wait after a failure; zero: nobody does.
	Until    time.Time
	Failures int    // consecutive ones
	Failure  string // the last one; empty: none since the last success
}

// Failed returns the state after a failure, in which all processors wait until a time.
func (w Work) Failed(failure string, until time.Time) Work {
	return Work{Until: until, Failures: w.Failures + 1, Failure: truncate(failure, maxFailure)}
}

// ByMeaning reports whether passages are also ranked by meaning.
func (s Settings) ByMeaning() bool { return s.ConnectionID != "" }

// Check returns Invalid for settings with invalid fields. Settings without a connection have no model.
func (s Settings) Check() error {
	var f apperr.Fields
	isName := strings.TrimSpace(s.Model) != "" && printable(s.Model) && utf8.RuneCountInString(s.Model) <= maxModel
	switch {
	case s.ByMeaning() && !isName:
		f.Add("model", "must have 1 to "+strconv.Itoa(maxModel)+" characters, and no control characters")
	case !s.ByMeaning() && s.Model != "":
		f.Add("model", "must be empty without a connection")
	}
	if strings.ContainsFunc(s.ConnectionID, unicode.IsControl) {
		f.Add("connectionId", "must have no control characters")
	}
	return f.Err()
}

// Progress is how many passages of a company have embeddings of its model.
type Progress struct {
	Passages int
	Embedded int
}

// Embedding is the vector of a text, and the model that has made it: those of two models cannot be compared.
type Embedding struct {
	Model  string `json:"model"` // see [EmbeddingModel]
	Vector []byte `json:"vector"`
}

// EmbeddingModel names a model of a server in an [Embedding]: the same name may be another model elsewhere.
func EmbeddingModel(baseURL, model string) string {
	return model + " " + strings.TrimSuffix(baseURL, "/")
}

// Vector returns the direction of a vector, an int8 for each number, scaled so that the largest is 127. It is a
// quarter of the size, and changes the cosine of two vectors by less than 0.01. A vector without a direction is nil.
func Vector(numbers []float32) []byte {
	largest := 0.0
	for _, n := range numbers {
		largest = max(largest, math.Abs(float64(n)))
	}
	if largest == 0 || math.IsInf(largest, 0) || math.IsNaN(largest) {
		return nil
	}
	vector := make([]byte, len(numbers))
	for i, n := range numbers {
		vector[i] = byte(int8(math.Round(float64(n) / largest * math.MaxInt8)))
	}
	return vector
}

// Cosine returns how similar the directions of two vectors are, from -1 to 1. It is 0 if one is empty, or of another
// length.
func Cosine(a, b []byte) float64 {
	if len(a) != len(b) || len(a) == 0 {
		return 0
	}
	var product, ofA, ofB int64
	for i := range a {
		x, y := int64(int8(a[i])), int64(int8(b[i]))
		product += x * y
		ofA += x * x
		ofB += y * y
	}
	if ofA == 0 || ofB == 0 {
		return 0
	}
	return float64(product) / math.Sqrt(float64(ofA)*float64(ofB))
}

// Shortened returns the beginning of a text, of at most size bytes.
func Shortened(text string, size int) string { return truncate(text, size) }

// EmbeddedText returns the text of a passage that is embedded.
func EmbeddedText(p Passage) string {
	parts := slices.DeleteFunc([]string{p.Title, p.Heading, p.Text}, func(s string) bool { return s == "" })
	return strings.Join(parts, "\n")
}

// rankOffset is the constant of the reciprocal rank fusion: the lower, the more the first places count. 60, which is
// usual for lists of thousands, makes the first of 50 places worth twice the last; see docs/benchmarks.md.
const rankOffset = 5

// RankByMeaning orders passages that a search by words has found, best first, by their places in this order and in that
// of the cosine to the embedding of the question (reciprocal rank fusion). A passage without an embedding of the same
// model keeps the place that it has by words. It returns at most limit passages, without embeddings.
func RankByMeaning(found []Passage, question Embedding, limit int) []Passage {
	type place struct {
		Passage
		score float64
	}
	places := make([]place, len(found))
	fused := func(at int) float64 { return 1 / float64(rankOffset+1+at) }
	var compared []int // places of those with a comparable embedding
	for i, p := range found {
		places[i] = place{p, fused(i)}
		if p.Embedding.Model == question.Model && len(p.Embedding.Vector) == len(question.Vector) {
			compared = append(compared, i)
		} else {
			places[i].score *= 2
		}
	}
	byCosine := slices.Clone(compared)
	cosines := make(map[int]float64, len(compared))
	for _, i := range compared {
		cosines[i] = Cosine(found[i].Embedding.Vector, question.Vector)
	}
	slices.SortStableFunc(byCosine, func(a, b int) int { return cmp.Compare(cosines[b], cosines[a]) })
	// Those without an embedding keep their places in the order by cosine too: the others share the places that are left.
	for at, i := range byCosine {
		places[i].score += fused(compared[at])
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(b.score, a.score) })
	best := make([]Passage, 0, min(limit, len(places)))
	for _, p := range places[:min(limit, len(places))] {
		p.Embedding = Embedding{}
		best = append(best, p.Passage)
	}
	return best
}

// EmbeddingRequest asks a processor for the embedding of a text, by settings that need not be stored.
type EmbeddingRequest struct {
	CompanyID    string `json:"companyId"`
	ConnectionID string `json:"connectionId"`
	Model        string `json:"model"`
	Text         string `json:"text"`
}

// EmbeddingAnswer is an embedding, or why there is none.
type EmbeddingAnswer struct {
	Embedding Embedding `json:"embedding,omitzero"`
	Failure   string    `json:"failure,omitempty"` // what the company reads; empty: none
	OfModel   bool      `json:"ofModel,omitempty"` // the server answers, but refuses the model
}
