package nemesis

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// margin is how long before the first and after the last event of a message its story has connects and faults.
const margin = 30 * time.Second

// clock returns a time of the day, in milliseconds.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// line is a line of a story.
type line struct {
	at   time.Time
	text string
}

// chatIDOf returns the chat of a message; empty: it is not known.
func (x *index) chatIDOf(messageID string) string {
	m := cmp.Or(x.byID[messageID], x.questions[messageID])
	if m == nil {
		return ""
	}
	return m.chatID
}

// story returns what the record has of a violation's message: the writes of it or of its question, the deliveries,
// statuses and webhooks, the connects of the chat's clients and the faults meanwhile, and at last its places in views.
func (x *index) story(v Violation) []string {
	var lines []line
	add := func(at time.Time, format string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(format, args...)})
	}
	m := cmp.Or(x.byID[v.MessageID], x.questions[v.MessageID])
	if m != nil {
		for _, w := range m.attempts {
			add(w.Begun, "%s %s begins to write %q, key %s, has seen %v", w.Side, w.Actor, w.Text, w.Key, w.SeenIDs)
			add(w.Ended, "%s %s is answered %d %s", w.Side, w.Actor, w.Status, w.MessageID)
		}
	}
	if v.MessageID != "" {
		x.addEvents(v.MessageID, add)
		x.addDrafts(v.MessageID, add)
	}
	from, until := bounds(lines)
	for _, c := range x.Connects {
		if c.ChatID == v.ChatID && c.At.After(from) && c.At.Before(until) {
			loaded := slices.Contains(c.Loaded, v.MessageID)
			add(c.At, "%s connects: recovered %t, gone %t, loaded %d messages, this one %t",
				c.Client, c.Recovered, c.Gone, len(c.Loaded), loaded)
		}
	}
	for _, t := range x.Turns {
		if t.ChatID == v.ChatID && t.Begun.Before(until) && t.Ended.After(from) {
			add(t.Begun, "the chat is given to the agents %t", t.Agent)
			add(t.Ended, "which is answered with a success %t", t.Done)
		}
	}
	for _, f := range x.Faults {
		if f.Begun.Before(until) && f.Ended.After(from) {
			add(f.Begun, "fault: %s %s, until %s", f.Fault.Kind, f.Fault.Target, clock(f.Ended))
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var story []string
	for _, l := range lines {
		story = append(story, clock(l.at)+" "+l.text)
	}
	for _, c := range x.Completions {
		if m != nil && c.Question == m.text {
			story = append(story, fmt.Sprintf("the model wrote %q, ended %t", c.Text, c.Ended))
		}
	}
	return append(story, x.places(v)...)
}

// addDrafts adds what clients have put together from the parts of a message.
func (x *index) addDrafts(id string, add func(time.Time, string, ...any)) {
	for _, d := range x.Drafts {
		if d.MessageID == id {
			add(d.At, "%s has put %q together, whole %t", d.Client, d.Text, d.Whole)
		}
	}
}

// addEvents adds what happened to a message after it was written.
func (x *index) addEvents(id string, add func(time.Time, string, ...any)) {
	for _, d := range x.Deliveries {
		if d.MessageID == id {
			add(d.At, "%s receives it: %q", d.Client, d.Text)
		}
	}
	for _, s := range x.Statuses {
		if s.MessageID == id {
			add(s.At, "%s reports the status %s", s.Source, s.Name)
		}
	}
	for _, w := range x.Webhooks {
		if w.MessageID == id {
			add(w.At, "the webhook %s receives it: %s %s", w.Endpoint, w.Type, w.WebhookID)
		}
	}
}

// bounds returns the period of a story's lines, with a margin. A story without lines is that of the whole run.
func bounds(lines []line) (from, until time.Time) {
	if len(lines) == 0 {
		return time.Time{}, farAway
	}
	earlier := func(a, b line) int { return a.at.Compare(b.at) }
	return slices.MinFunc(lines, earlier).at.Add(-margin), slices.MaxFunc(lines, earlier).at.Add(margin)
}

// places returns where a message stands in the views of its chat, and after which one.
func (x *index) places(v Violation) (lines []string) {
	for _, seen := range x.Views {
		if seen.ChatID != v.ChatID {
			continue
		}
		name := fmt.Sprintf("at the end %s (whole %t, owner %q, %d messages)",
			seen.Reader, seen.Whole, seen.Owner, len(seen.Messages))
		found := false
		for n, m := range seen.Messages {
			if m.ID != v.MessageID {
				continue
			}
			found = true
			after := "none"
			if n > 0 {
				before := seen.Messages[n-1]
				after = fmt.Sprintf("%s %q of %s", before.ID, before.Text, before.CreatedAt)
			}
			lines = append(lines, fmt.Sprintf("%s: place %d, %s %q of %s; before it %s",
				name, n+1, m.Side, m.Text, m.CreatedAt, after))
		}
		if !found {
			lines = append(lines, name+": not there")
		}
	}
	return lines
}
