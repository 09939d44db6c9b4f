package nemesis

import (
	"maps"
	"slices"
	"time"
)

// This file has the rules of order. All compare with the history: lists that agree with it agree with each other.

func oneOrder(x *index) (broken []Violation) {
	for _, c := range x.chats {
		for _, v := range c.views {
			var ids []string
			for _, m := range v.Messages {
				ids = append(ids, m.ID)
			}
			excused := never
			if v.Live {
				excused = x.betweenStreams
			}
			broken = append(broken, c.disordered(v.Reader, ids, excused)...)
		}
		for _, client := range x.clientsOf(c) {
			for _, s := range client.sessions {
				loads := client.name + " at its load of " + clock(s.At)
				broken = append(broken, c.disordered(loads, s.Loaded, never)...)
				page := slices.Concat(s.Loaded, s.received())
				broken = append(broken, c.disordered(client.name, page, never)...)
			}
		}
	}
	return broken
}

func never(string, string) bool { return false }

// betweenStreams excuses the order in which a reader of several streams receives messages that may have been published
// in either order: one of the visitor's and one to the visitor. Those to the visitor are in one stream.
func (x *index) betweenStreams(a, b string) bool {
	return x.ofVisitor(a) != x.ofVisitor(b) && x.concurrent(a, b)
}

func (x *index) ofVisitor(id string) bool {
	m := x.byID[id]
	return m != nil && m.side == Visitor
}

func (x *index) clientsOf(c *chat) []*client {
	return slices.DeleteFunc(slices.Clone(x.clients), func(client *client) bool { return client.chatID != c.id })
}

// received returns the ids of the deliveries that were not loaded, each once.
func (s *session) received() (ids []string) {
	seen := maps.Clone(s.loaded)
	for _, d := range s.deliveries {
		if !seen[d.MessageID] {
			ids = append(ids, d.MessageID)
		}
		seen[d.MessageID] = true
	}
	return ids
}

// disordered returns a violation for each id of a list that follows one that it precedes in the history, unless all
// such pairs are excused. Ids that the history lacks, and repetitions, do not count.
func (c *chat) disordered(reader string, ids []string, excused func(a, b string) bool) (broken []Violation) {
	if c.history == nil {
		return nil
	}
	place := c.history.place
	var before []string
	repeated := map[string]bool{}
	highest := -1
	for _, id := range ids {
		if c.history.times[id] == 0 || repeated[id] {
			continue
		}
		repeated[id] = true
		wrong := func(b string) bool { return place[b] > place[id] && !excused(b, id) }
		if place[id] < highest {
			if n := slices.IndexFunc(before, wrong); n >= 0 {
				detail := "%s has it after %s, the reader %q before"
				broken = append(broken, violation(c.id, id, detail, reader, before[n], c.history.Reader))
			}
		}
		highest = max(highest, place[id])
		before = append(before, id)
	}
	return broken
}

func orderOfWriter(x *index) (broken []Violation) {
	for _, c := range x.chats {
		byActor := map[string][]*message{}
		for _, m := range c.messages {
			if c.history != nil && c.history.times[m.id()] > 0 {
				writer := string(m.side) + " " + m.actor
				byActor[writer] = append(byActor[writer], m)
			}
		}
		for _, writer := range slices.Sorted(maps.Keys(byActor)) {
			broken = append(broken, c.overtaken(byActor[writer])...)
		}
	}
	return broken
}

// overtaken returns a violation for each message that stands before one that was accepted before its first attempt: a
// retried message has a time between its first attempt and its success.
func (c *chat) overtaken(messages []*message) (broken []Violation) {
	place := func(m *message) int { return c.history.place[m.id()] }
	byEnd := slices.Clone(messages)
	slices.SortStableFunc(byEnd, func(a, b *message) int { return a.written().until.Compare(b.written().until) })
	var last *message // the last in the history of those that had been accepted
	for _, m := range messages {
		for len(byEnd) > 0 && !byEnd[0].written().until.After(m.first().Begun) {
			if last == nil || place(last) < place(byEnd[0]) {
				last = byEnd[0]
			}
			byEnd = byEnd[1:]
		}
		if last != nil && place(m) < place(last) {
			detail := "%q stands before %q, which %s wrote first"
			broken = append(broken, violation(c.id, m.id(), detail, m.text, last.text, m.actor))
		}
	}
	return broken
}

// storedAgain reports whether a message that was seen by a time is a later one in the history: the power failed before
// it was on the disk, and its publisher, which had no answer, has published it again.
func (x *index) storedAgain(history *view, id string, seen time.Time) bool {
	at, known := history.timeOf(id)
	if !known || !at.After(seen) {
		return false
	}
	return slices.ContainsFunc(x.Faults, func(f FaultSpan) bool {
		return f.Fault.Kind == Power && f.Begun.Before(at)
	})
}

func causeBeforeEffect(x *index) (broken []Violation) {
	for _, c := range x.chats {
		if c.history == nil {
			continue
		}
		after := func(cause, effect string) bool {
			bothStand := c.history.times[cause] > 0 && c.history.times[effect] > 0
			return bothStand && c.history.place[cause] > c.history.place[effect]
		}
		for _, m := range c.messages {
			for _, seen := range m.first().SeenIDs {
				if after(seen, m.id()) && !x.storedAgain(c.history, seen, m.first().Begun) {
					detail := "%q stands before %s, which its writer had seen"
					broken = append(broken, violation(c.id, m.id(), detail, m.text, seen))
				}
			}
			for _, id := range slices.Sorted(maps.Keys(m.answers)) {
				if after(m.id(), id) {
					broken = append(broken, violation(c.id, id, "the answer stands before its question %q", m.text))
				}
			}
		}
	}
	return broken
}
