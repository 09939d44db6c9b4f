package knowledge_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parley-chat/parley/pkg/knowledge"
)

// direction returns a vector of a random direction.
func direction(r *rand.Rand, dimensions int) []float32 {
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = float32(r.NormFloat64() / 100)
	}
	return v
}

func cosine(a, b []float32) float64 {
	var product, ofA, ofB float64
	for i := range a {
		product += float64(a[i]) * float64(b[i])
		ofA += float64(a[i]) * float64(a[i])
		ofB += float64(b[i]) * float64(b[i])
	}
	return product / math.Sqrt(ofA*ofB)
}

// TestVectors compares the cosines of stored vectors with those of the numbers.
func TestVectors(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for _, dimensions := range []int{64, 384, 1536} {
		for range 200 {
			a, b := direction(r, dimensions), direction(r, dimensions)
			near := r.Float32()
			for i := range b {
				b[i] = near*a[i] + (1-near)*b[i]
			}
			got := knowledge.Cosine(knowledge.Vector(a), knowledge.Vector(b))
			worst = max(worst, math.Abs(got-cosine(a, b)))
		}
	}
	if t.Logf("the cosines differ by at most %.4f", worst); worst > 0.01 {
		t.Errorf("got a difference of %.4f, want at most 0.01", worst)
	}
	if got := knowledge.Vector([]float32{-2, 1, 0, 2}); !slices.Equal(got, []byte{0x81, 64, 0, 127}) {
		t.Errorf("got %v, want int8 of which the largest is 127", got)
	}
	for name, numbers := range map[string][]float32{
		"none": nil, "zeros": {0, 0}, "infinite": {float32(math.Inf(1))}, "no number": {float32(math.NaN())},
	} {
		if got := knowledge.Vector(numbers); got != nil {
			t.Errorf("%s: got %v, want no direction", name, got)
		}
	}
	if got := knowledge.Cosine([]byte{1}, []byte{1, 1}); got != 0 {
		t.Errorf("vectors of two lengths: got %v, want 0", got)
	}
}

// TestRankByMeaning ranks passages that words have found in the order of their numbers.
func TestRankByMeaning(t *testing.T) {
	t.Parallel()
	question := knowledge.Embedding{Model: "m", Vector: []byte{100, 0}}
	near, far, none := []byte{100, 10}, []byte{0, 100}, []byte(nil)
	for name, test := range map[string]struct {
		vectors [][]byte
		model   string
		want    []int
	}{
		"one is near":                 {[][]byte{far, far, near, far}, "m", []int{1, 3, 2, 4}},
		"the first one is near":       {[][]byte{near, far, far}, "m", []int{1, 2, 3}},
		"without embeddings":          {[][]byte{none, none, none}, "", []int{1, 2, 3}},
		"of another model":            {[][]byte{far, near, near}, "other", []int{1, 2, 3}},
		"of another length":           {[][]byte{{1}, {1}, {1}}, "m", []int{1, 2, 3}},
		"some are not yet embedded":   {[][]byte{none, far, far, none, near}, "m", []int{1, 2, 5, 3}},
		"none are found":              {nil, "m", nil},
		"more are found than wanted":  {[][]byte{far, far, far, far, near}, "m", []int{1, 2, 5, 3}},
		"equally far keep the places": {[][]byte{far, far, far}, "m", []int{1, 2, 3}},
	} {
		var found []knowledge.Passage
		for i, v := range test.vectors {
			found = append(found, knowledge.Passage{Number: i + 1, Embedding: knowledge.Embedding{Model: test.model, Vector: v}})
		}
		var got []int
		for _, p := range knowledge.RankByMeaning(found, question, 4) {
			got = append(got, p.Number)
			if p.Embedding.Vector != nil {
				t.Errorf("%s: got a passage with its embedding, want none", name)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
