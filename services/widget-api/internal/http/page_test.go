package http

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPageOf(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]conversation.PageQuery{
		"":                        {},
		"lang=en":                 {},
		"limit=1":                 {Limit: 1},
		"limit=1000":              {Limit: 1000},
		"before=a%2Fb":            {Limit: 100, Before: "a/b"},
		"before=x&limit=7&lang=x": {Limit: 7, Before: "x"},
	} {
		if got, err := pageOf(query); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", query, got, err, want)
		}
	}
	for query, want := range map[string]string{
		"limit=":            "limit must be a whole number from 1 to 1000",
		"limit=0":           "limit must be",
		"limit=1001":        "limit must be",
		"limit=-1":          "limit must be",
		"limit=1e3":         "limit must be",
		"limit=%31%20":      "limit must be",
		"limit=1&limit=1":   "limit must be given once",
		"before=":           "before must be the id of a message",
		"before=x&before=y": "before must be given once",
		"before=&limit=x":   "limit must be",
		"limit=%zz":         "query must be",
		"limit=1;before=x":  "query must be",
	} {
		if _, err := pageOf(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want it to say %q", query, err, want)
		}
	}
}

// The link to the next page has the same limit, and ends before the first message.
func FuzzPageOf(f *testing.F) {
	for _, seed := range []string{"", "limit=5", "before=x", "before=%3E%22%0A&limit=1000", "limit=%zz", "limit=١"} {
		f.Add(seed, "0198b1c6-4c40-7b53-9d1f-6a0f3f5a9e21")
	}
	f.Add("limit=1", "an id\r\n with <>; rel=\"next\"")
	f.Fuzz(func(t *testing.T, query, first string) {
		page, err := pageOf(query)
		if err != nil || page.Limit == 0 {
			return
		}
		if page.Limit < 1 || page.Limit > maxLimit {
			t.Fatalf("got the limit %d, want 1 to %d", page.Limit, maxLimit)
		}
		link := linkToNext(page, first)
		target, ok := strings.CutSuffix(strings.TrimPrefix(link, "<?"), `>; rel="next"`)
		if !ok || strings.ContainsAny(target, "<> \"\r\n") {
			t.Fatalf("got the link %q, want one target", link)
		}
		next, err := pageOf(target)
		if first != "" && (err != nil || next != conversation.PageQuery{Limit: page.Limit, Before: first}) {
			t.Fatalf("the link %q: got %+v, %v, want %d before %q", link, next, err, page.Limit, first)
		}
	})
}
