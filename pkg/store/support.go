package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// CheckSupport returns Invalid for settings that cannot be stored.
func CheckSupport(s chat.Support) error {
	var f apperr.Fields
	for _, fault := range s.Check() {
		f.Add(fault.Field, fault.Message)
	}
	return f.Err()
}

// SupportText returns the stored JSON text of the settings; empty for the zero settings.
func SupportText(s chat.Support) string {
	if s == (chat.Support{}) {
		return ""
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic("store: settings of strings and booleans do not encode: " + err.Error())
	}
	return string(text)
}

// ParseSupport is the inverse of [SupportText].
func ParseSupport(text string) (s chat.Support) {
	if text == "" {
		return s
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(fmt.Sprintf("store: stored settings are not JSON: %v", err))
	}
	return s
}

// Ratings are the ratings of one application's chats.
type Ratings struct {
	AppID  string
	Scores [chat.MaxScore]int // number of ratings with score 1, 2, ...
}

// Count returns the number of ratings.
func (r Ratings) Count() (n int) {
	for _, of := range r.Scores {
		n += of
	}
	return n
}

// Average returns the mean score; 0 without ratings.
func (r Ratings) Average() float64 {
	sum, n := 0, r.Count()
	if n == 0 {
		return 0
	}
	for i, of := range r.Scores {
		sum += (i + 1) * of
	}
	return float64(sum) / float64(n)
}

// RatingSums sums the ratings of a page of applications. It holds no more than that page.
type RatingSums struct {
	page Page
	sums map[string]*Ratings // by application
}

// NewRatingSums returns empty sums for a page; its cursor is an application.
func NewRatingSums(p Page) *RatingSums { return &RatingSums{page: p, sums: make(map[string]*Ratings)} }

// Add adds n ratings with a score. An invalid score is ignored.
func (s *RatingSums) Add(appID string, score, n int) {
	if score < chat.MinScore || score > chat.MaxScore || appID <= s.page.After {
		return
	}
	if s.sums[appID] == nil {
		s.sums[appID] = &Ratings{AppID: appID}
	}
	s.sums[appID].Scores[score-1] += n
	if len(s.sums) > s.page.Size() { // the last application is on a later page, whatever follows
		delete(s.sums, slices.Max(slices.Collect(maps.Keys(s.sums))))
	}
}

// Sorted returns the sums ordered by application.
func (s *RatingSums) Sorted() []Ratings {
	sums := make([]Ratings, 0, len(s.sums))
	for _, r := range s.sums {
		sums = append(sums, *r)
	}
	slices.SortFunc(sums, func(a, b Ratings) int { return strings.Compare(a.AppID, b.AppID) })
	return sums
}
