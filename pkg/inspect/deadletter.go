package inspect

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
)

// DeadLetter is a dead letter in display form.
type DeadLetter struct {
	Sequence  uint64    `json:"sequence"`
	Time      chat.Time `json:"time"`
	Stream    string    `json:"stream"`
	Original  uint64    `json:"originalSequence"`
	Consumer  string    `json:"consumer"`
	Subject   string    `json:"subject"`
	Type      string    `json:"type"`
	MessageID string    `json:"messageId"`
	CompanyID string    `json:"companyId,omitempty"`
	ChatID    string    `json:"chatId,omitempty"`
	Attempts  int       `json:"attempts"`
	Reason    string    `json:"reason"`
	Truncated bool      `json:"truncated"`
}

// DeadLetterDetail is a dead letter with its headers and its event.
type DeadLetterDetail struct {
	DeadLetter
	Header map[string][]string `json:"headers"`
	Event  json.RawMessage     `json:"event,omitempty"`
	Text   string              `json:"eventText,omitempty"` // if the event is not JSON
}

// DeadLetterOf returns the display form of a dead letter.
func DeadLetterOf(l bus.DeadLetter) DeadLetter {
	p := ReadEvent(bus.Delivery{Subject: l.Subject, Data: l.Data, Header: l.Header})
	return DeadLetter{
		Sequence: l.Sequence,
		Time:     chat.Time(l.Time),
		Stream:   l.Stream,
		Original: l.Original,
		Consumer: l.Consumer,
		Subject:  l.Subject,
		Type:     l.EventType,

		MessageID: l.EventID,
		CompanyID: p.CompanyID,
		ChatID:    p.ChatID,
		Attempts:  l.Attempts,
		Reason:    l.Reason,
		Truncated: l.Truncated,
	}
}

// DetailOf returns the dead letter with its headers and its event.
func DetailOf(l bus.DeadLetter) DeadLetterDetail {
	d := DeadLetterDetail{DeadLetter: DeadLetterOf(l), Header: l.Header}
	if json.Valid(l.Data) {
		d.Event = l.Data
	} else {
		d.Text = string(l.Data)
	}
	return d
}

// DeadLetterFilter selects dead letters; an empty field matches all.
type DeadLetterFilter struct {
	Stream, Consumer, CompanyID, ChatID, MessageID string
	Reason                                         string // substring of the reason
	Since                                          time.Time
	After                                          uint64 // only sequences greater than this
}

// Wants reports whether a dead letter matches the filter. The stream, the consumer and the sequence are those that
// [DeadLetters] reads.
func (f DeadLetterFilter) Wants(l DeadLetter) bool {
	return matchesFold(f.CompanyID, l.CompanyID) &&
		matchesFold(f.ChatID, l.ChatID) &&
		matchesFold(f.MessageID, l.MessageID) &&
		strings.Contains(l.Reason, f.Reason) &&
		!time.Time(l.Time).Before(f.Since)
}

// matchesFold reports whether a field has the wanted value in any case; an empty one matches all.
func matchesFold(wanted, got string) bool { return wanted == "" || strings.EqualFold(wanted, got) }

// DeadLetters returns up to limit dead letters that match the filter, oldest first, without their events; limit 0: all.
func DeadLetters(ctx context.Context, b *bus.Bus, f DeadLetterFilter, limit int) (found []DeadLetter, err error) {
	for l, err := range b.DeadLetters(ctx, f.Stream, f.Consumer, f.After) {
		if err != nil {
			return nil, err
		}
		deadLetter := DeadLetterOf(l)
		if !f.Wants(deadLetter) {
			continue
		}
		found = append(found, deadLetter)
		if len(found) == limit {
			break
		}
	}
	return found, nil
}

// Outcome is the result of an operation on a dead letter.
type Outcome struct {
	DeadLetter
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
}

// Action is what [Act] does with each dead letter.
type Action struct {
	Do       func(bus.DeadLetter) error
	Done     string             // the result of a successful Do
	Describe func(error) string // formats an error for people
	Pace     func() bool        // called between two dead letters; false stops. nil: no pause
}

// Act applies an action to the dead letters with these sequences, and loads one at a time. A failure, such as
// a missing dead letter, does not stop it, unless NATS becomes unavailable or ctx ends. failed is the last
// error.
func Act(ctx context.Context, b *bus.Bus, sequences []uint64, a Action) (outcomes []Outcome, failed error) {
	for i, sequence := range sequences {
		if i > 0 && a.Pace != nil && !a.Pace() {
			break
		}
		l, err := b.DeadLetter(ctx, sequence)
		if err == nil {
			err = a.Do(l)
		}
		l.Sequence = sequence
		o := Outcome{DeadLetter: DeadLetterOf(l), Result: a.Done}
		if err != nil {
			o.Result = "failed"
			o.Error = a.Describe(err)
			failed = err
		}
		outcomes = append(outcomes, o)
		if apperr.Is(err, apperr.Unavailable) || ctx.Err() != nil {
			break
		}
	}
	return outcomes, failed
}
