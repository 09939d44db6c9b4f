package store

import (
	"encoding/json"
	"fmt"
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

// SupportText is the JSON text under which engines keep the settings; empty for the zero settings.
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

// ParseSupport reads what [SupportText] has written.
func ParseSupport(text string) (s chat.Support) {
	if text == "" {
		return s
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(fmt.Sprintf("store: settings that Parley wrote are no JSON: %v", err))
	}
	return s
}

// Ratings are how visitors of one application have rated their chats.
type Ratings struct {
	AppID  string
	Scores [chat.MaxScore]int // how many gave 1, 2, ...
}

// Count is how many ratings there are.
func (r Ratings) Count() (n int) {
	for _, of := range r.Scores {
		n += of
	}
	return n
}

// Average is the mean score; 0 without ratings.
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

// RatingSums adds ratings up by application.
type RatingSums map[string]*Ratings

// Add adds n ratings with a score. What is no score is left out.
func (s RatingSums) Add(appID string, score, n int) {
	if score < chat.MinScore || score > chat.MaxScore {
		return
	}
	if s[appID] == nil {
		s[appID] = &Ratings{AppID: appID}
	}
	s[appID].Scores[score-1] += n
}

// Sorted returns the sums ordered by application.
func (s RatingSums) Sorted() []Ratings {
	sums := make([]Ratings, 0, len(s))
	for _, r := range s {
		sums = append(sums, *r)
	}
	slices.SortFunc(sums, func(a, b Ratings) int { return strings.Compare(a.AppID, b.AppID) })
	return sums
}
