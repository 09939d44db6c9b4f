package bots

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

const (
	// MaxBound is the maximum of each number of [Bounds].
	MaxBound = 1_000_000_000
	// WarnAt is the part of a bound of the application, in percent, from which the company is warned.
	WarnAt = 80
	// UsageKept is how long the usage of an application is kept, UsageOfVisitorKept that of a visitor: its day, and what
	// clocks differ.
	UsageKept          = 90 * 24 * time.Hour
	UsageOfVisitorKept = 25 * time.Hour
)

// Bounds are what the bot of an application may use; zero: no bound. They are the company's own, beside the operator's.
// A day is one of UTC.
type Bounds struct {
	CallsAtOnce   int    `json:"callsAtOnce,omitempty"` // of all processors
	Application   Amount `json:"application,omitzero"`  // a day, of all visitors
	Visitor       Amount `json:"visitor,omitzero"`      // a day, of each visitor
	ExhaustedText string `json:"exhaustedText,omitempty"`
}

// Amount is what a bot uses.
type Amount struct {
	Questions int `json:"questions"` // messages of visitors with which a server was called
	Tokens    int `json:"tokens"`    // of language models, as they report them
}

// Add returns the sum.
func (a Amount) Add(b Amount) Amount { return Amount{a.Questions + b.Questions, a.Tokens + b.Tokens} }

// Within reports whether the amount is within a bound.
func (a Amount) Within(bound Amount) bool {
	within := func(n, bound int) bool { return bound == 0 || n <= bound }
	return within(a.Questions, bound.Questions) && within(a.Tokens, bound.Tokens)
}

// Near reports whether [WarnAt] percent of a bound is used.
func (a Amount) Near(bound Amount) bool {
	near := func(n, bound int) bool { return bound > 0 && n*100 >= bound*WarnAt }
	return near(a.Questions, bound.Questions) || near(a.Tokens, bound.Tokens)
}

// UsageOf is whose usage is counted, and on which day.
type UsageOf struct {
	AppID      string
	ChatUserID string    // empty: all visitors
	Day        time.Time // its beginning, see [Day]
}

// Day returns the beginning of a time's day.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// ExpiresAt returns until when the usage is kept.
func (u UsageOf) ExpiresAt() time.Time {
	if u.ChatUserID != "" {
		return u.Day.Add(24*time.Hour + UsageOfVisitorKept)
	}
	return u.Day.Add(UsageKept)
}

// Usage is what a bot has used on a day.
type Usage struct {
	Day time.Time `json:"day"`
	Amount
}

func (b Bounds) check(f *apperr.Fields) {
	for field, n := range map[string]int{
		"bounds.callsAtOnce":           b.CallsAtOnce,
		"bounds.application.questions": b.Application.Questions, "bounds.application.tokens": b.Application.Tokens,
		"bounds.visitor.questions": b.Visitor.Questions, "bounds.visitor.tokens": b.Visitor.Tokens,
	} {
		if n < 0 || n > MaxBound {
			f.Add(field, "must be 1 to "+strconv.Itoa(MaxBound)+", or 0 for no bound")
		}
	}
	if utf8.RuneCountInString(b.ExhaustedText) > chat.MaxTextLength || !utf8.ValidString(b.ExhaustedText) {
		f.Add("bounds.exhaustedText", "must have at most "+strconv.Itoa(chat.MaxTextLength)+" characters")
	}
}
