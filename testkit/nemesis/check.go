package nemesis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Violation is a promise that a record breaks.
type Violation struct {
	Rule      string // the name of a rule of [Rules]
	ChatID    string
	MessageID string // empty: it is about no single message, or its id is not known
	Detail    string
	History   []string // what the record has of the message or the chat, by time; only for the first of each rule
}

// Rule is a promise that a record is checked for.
type Rule struct {
	Name     string
	Sentence string // what holds
	broken   func(x *index) []Violation
}

// Rules returns all rules, in the order in which they are checked.
func Rules() []Rule {
	return []Rule{
		{"accepted-stored", "An accepted message stands in each whole view of its chat, once, and in each view that " +
			"has all since its first message, if it is not older.", acceptedStored},
		{"accepted-delivered", "A client that stays has each accepted message of the company, and each answer to an " +
			"accepted message: loaded, or received since it connected.", acceptedDelivered},
		{"delivered-once", "A client receives a message once in a session, unless it has loaded it.", deliveredOnce},
		{"one-order", "All readers of a chat have its messages in the same order. Clients may receive messages in " +
			"another one only if they were written at the same time.", oneOrder},
		{"order-of-writer", "Messages that one writer wrote one after the other stand in that order.", orderOfWriter},
		{"cause-before-effect", "A message stands after those that its writer had seen at the first attempt, " +
			"and an answer after its question. What was seen and then lost with the power is a later message.",
			causeBeforeEffect},
		{"nothing-invented", "Each message that was read was written, on that side and with that text, and no view " +
			"has it twice.", nothingInvented},
		{"key-once", "The attempts under one key write one message, and no other key has its id.", keyOnce},
		{"event-once", "A stream has an event once, also if it was published again.", eventOnce},
		{"answered", "The bot answers each accepted message that it should answer.", answered},
		{"answered-once", "The bot answers no message twice.", answeredOnce},
		{"silent-for-agents", "The bot writes nothing while the agents have the chat, if the question came after they " +
			"took it.", silentForAgents},
		{"answer-of-model", "An answer of the model is what it wrote to the question, or the beginning of that if it " +
			"says so.", answerOfModel},
		{"parts-agree", "The parts of an answer, put together, are the text of the message, or the beginning of what " +
			"the model wrote.", partsAgree},
		{"status-up", "The status of a message never goes back: accepted, stored, failed, delivered, read.", statusUp},
		{"status-told", "A webhook is told once that a message of the company was delivered, read or failed, if that is " +
			"its status in the end, and nothing beyond that status.", statusTold},
		{"unread-equal", "A count of unread messages is the number of messages that are unread.", unreadEqual},
		{"owned", "A chat has one visitor and one company, and only their messages; clients get no others.", owned},
		{"webhook-called", "A registered webhook receives each accepted message of a visitor.", webhookCalled},
		{"webhook-id", "All deliveries of an event have the same webhook-id, and no other event has it.", webhookID},
	}
}

// maxHistories bounds the violations of a rule that have a history.
const maxHistories = 10

// Check returns what the record breaks, in the order of [Rules]. It returns none if all promises were kept.
//
// It takes unknown outcomes for what they are: a write without an answer, or with an error, may have had its effect or
// not, also after its end.
func Check(r *Record) []Violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := newIndex(&r.notes)
	var all []Violation
	for _, rule := range Rules() {
		for n, v := range rule.broken(x) {
			v.Rule = rule.Name
			if n < maxHistories {
				v.History = x.story(v)
			}
			all = append(all, v)
		}
	}
	return all
}

// violation returns a violation with a formatted detail.
func violation(chatID, messageID, format string, args ...any) Violation {
	return Violation{ChatID: chatID, MessageID: messageID, Detail: fmt.Sprintf(format, args...)}
}

func acceptedStored(x *index) (broken []Violation) {
	for _, c := range x.chats {
		unchecked := c.history == nil
		for _, m := range c.messages {
			if !m.accepted() {
				continue
			}
			if unchecked {
				broken = append(broken, violation(c.id, m.id(), "no view has the whole chat: it cannot be checked"))
				break
			}
			for _, v := range c.views {
				switch n := v.times[m.id()]; {
				case n == 0 && (v.Whole || v.since(c.history, m.id())):
					broken = append(broken, violation(c.id, m.id(), "%q is accepted and not in %s", m.text, v.Reader))
				case n > 1:
					broken = append(broken, violation(c.id, m.id(), "%q stands %d times in %s", m.text, n, v.Reader))
				}
			}
		}
	}
	return broken
}

func acceptedDelivered(x *index) (broken []Violation) {
	chats := map[string]*chat{}
	for _, c := range x.chats {
		chats[c.id] = c
	}
	for _, c := range x.clients {
		if len(c.sessions) == 0 || chats[c.chatID] == nil {
			continue
		}
		last := c.sessions[len(c.sessions)-1]
		if last.gone {
			continue
		}
		has := maps.Clone(last.loaded)
		for _, d := range last.deliveries {
			has[d.MessageID] = true
		}
		for _, id := range chats[c.chatID].owed(last) {
			if !has[id] {
				detail := "%s has neither loaded nor received it since it connected at %s"
				broken = append(broken, violation(c.chatID, id, detail, c.name, clock(last.At)))
			}
		}
	}
	return broken
}

// owed returns the ids of the messages that a client must have in a session.
func (c *chat) owed(s *session) (ids []string) {
	for _, m := range c.messages {
		loadedNothing := s.Loaded == nil
		if !m.accepted() || loadedNothing && !m.first().Begun.After(s.At) {
			continue
		}
		if m.side != Visitor && m.id() != "" {
			ids = append(ids, m.id())
		}
		for _, id := range slices.Sorted(maps.Keys(m.answers)) {
			if c.history != nil && c.history.times[id] > 0 {
				ids = append(ids, id)
			}
		}
	}
	if c.history == nil || !s.Part || len(s.Loaded) == 0 {
		return ids
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		return c.history.place[id] < c.history.place[s.Loaded[0]]
	})
}

func deliveredOnce(x *index) (broken []Violation) {
	for _, c := range x.clients {
		for _, s := range c.sessions {
			times := map[string]int{}
			for _, d := range s.deliveries {
				times[d.MessageID]++
				if times[d.MessageID] == 2 && !s.loaded[d.MessageID] {
					detail := "%s received it again at %s"
					broken = append(broken, violation(d.ChatID, d.MessageID, detail, c.name, clock(d.At)))
				}
			}
		}
	}
	return broken
}

func nothingInvented(x *index) (broken []Violation) {
	check := func(reader, chatID, id, text string, side Side) {
		found := runText.FindString(text)
		m, isAnswer := x.source(id, text, side)
		switch {
		case found != "" && m == nil:
			broken = append(broken, violation(chatID, id, "%s has %q, which that side did not write", reader, text))
		case m == nil || isAnswer || m.text == "":
		case m.text != found:
			broken = append(broken, violation(chatID, id, "%s has %q, written was %q", reader, text, m.text))
		case side != "" && (side == Visitor) != (m.side == Visitor):
			broken = append(broken, violation(chatID, id, "%s has it from %s, %s wrote it", reader, side, m.side))
		}
	}
	for _, c := range x.chats {
		for _, v := range c.views {
			for _, seen := range v.Messages {
				check(v.Reader, c.id, seen.ID, seen.Text, seen.Side)
			}
			for _, id := range slices.Sorted(maps.Keys(v.times)) {
				m := x.byID[id]
				if v.times[id] > 1 && (m == nil || !m.accepted()) {
					broken = append(broken, violation(c.id, id, "%s has it %d times", v.Reader, v.times[id]))
				}
			}
		}
	}
	for _, d := range x.Deliveries {
		check(d.Client, d.ChatID, d.MessageID, d.Text, "")
	}
	return append(broken, x.invented()...)
}

func keyOnce(x *index) (broken []Violation) {
	keys := map[string]string{} // by the id that was answered
	for _, m := range x.messages {
		if len(m.answered) > 1 {
			ids := strings.Join(m.answered, ", ")
			broken = append(broken, violation(m.chatID, m.id(), "the key %s was answered %s", m.key, ids))
		}
		for _, id := range m.answered {
			if other, taken := keys[id]; taken {
				broken = append(broken, violation(m.chatID, id, "answered to the keys %s and %s", other, m.key))
			}
			keys[id] = m.key
		}
		for _, id := range slices.Sorted(maps.Keys(m.seen)) {
			if id != m.id() && !slices.Contains(m.answered, id) {
				detail := "readers have %q also with the id %s"
				broken = append(broken, violation(m.chatID, m.id(), detail, m.text, id))
			}
		}
	}
	return broken
}

func eventOnce(x *index) (broken []Violation) {
	times := map[Event]int{}
	for _, e := range x.Events {
		times[e]++
		if times[e] == 2 {
			broken = append(broken, violation("", "", "%s has the event %s again", e.Stream, e.ID))
		}
	}
	return broken
}

func answered(x *index) (broken []Violation) {
	for _, c := range x.chats {
		for _, m := range c.messages {
			if !m.accepted() || !m.expects(func(w Write) bool { return w.AnswerExpected }) {
				continue
			}
			for _, v := range c.views {
				inView := func(id string) bool { return v.times[id] > 0 }
				has := v.Whole || v.since(c.history, m.id())
				if has && !slices.ContainsFunc(slices.Collect(maps.Keys(m.answers)), inView) {
					broken = append(broken, violation(c.id, m.id(), "%s has no answer to %q", v.Reader, m.text))
				}
			}
		}
	}
	return broken
}

func answeredOnce(x *index) (broken []Violation) {
	for _, m := range x.messages {
		if ids := slices.Sorted(maps.Keys(m.answers)); len(ids) > 1 {
			detail := "%q has the answers %s"
			broken = append(broken, violation(m.chatID, m.id(), detail, m.text, strings.Join(ids, ", ")))
		}
	}
	return broken
}

func silentForAgents(x *index) (broken []Violation) {
	for _, c := range x.chats {
		if c.history == nil {
			continue
		}
		for _, m := range c.messages {
			until, agents := x.agentsHave(c.id, m.first().Begun)
			if !agents {
				continue
			}
			for _, id := range slices.Sorted(maps.Keys(m.answers)) {
				at, known := c.history.timeOf(id)
				if known && at.Before(until) {
					detail := "the bot answers %q while the agents have the chat"
					broken = append(broken, violation(c.id, id, detail, m.text))
				}
			}
		}
	}
	return broken
}

// agentsHave reports whether the agents certainly have a chat at a time, and until when.
func (x *index) agentsHave(chatID string, at time.Time) (until time.Time, agents bool) {
	for _, t := range x.Turns { // of a chat by one agent: one after the other
		switch {
		case t.ChatID != chatID:
		case t.Begun.Before(at):
			agents = t.Agent && t.Done && t.Ended.Before(at)
		case !t.Agent:
			return t.Begun, agents
		}
	}
	return farAway, agents
}

func unreadEqual(x *index) (broken []Violation) {
	for _, u := range x.Unread {
		if u.Counted != u.Actual {
			detail := "%s counts %d unread messages, want %d"
			broken = append(broken, violation(u.ChatID, "", detail, u.Reader, u.Counted, u.Actual))
		}
	}
	return broken
}

func owned(x *index) (broken []Violation) {
	owners := map[string]map[string]bool{}
	for _, c := range x.chats {
		owners[c.id] = c.owners
		if len(c.owners) > 1 {
			names := slices.Sorted(maps.Keys(c.owners))
			broken = append(broken, violation(c.id, "", "it has the visitors %s", strings.Join(names, ", ")))
		}
		company := ""
		for _, v := range c.views {
			if v.Owner != "" && len(c.owners) > 0 && !c.owners[v.Owner] {
				broken = append(broken, violation(c.id, "", "%s says that it is the chat of %s", v.Reader, v.Owner))
			}
			if v.Company != "" && company != "" && v.Company != company {
				detail := "%s says that it is of %s, others of %s"
				broken = append(broken, violation(c.id, "", detail, v.Reader, v.Company, company))
			}
			company = v.Company
			for _, seen := range v.Messages {
				m, _ := x.source(seen.ID, seen.Text, seen.Side)
				if m != nil && m.chatID != "" && m.chatID != c.id {
					broken = append(broken, violation(c.id, seen.ID, "%s has it, it is of %s", v.Reader, m.chatID))
				}
			}
		}
	}
	for _, c := range x.clients {
		stranger := func(chatID string) bool {
			return c.actor != "" && len(owners[chatID]) > 0 && !owners[chatID][c.actor]
		}
		for _, s := range c.sessions {
			for _, id := range s.Loaded {
				if of := x.chatIDOf(id); stranger(of) {
					broken = append(broken, violation(of, id, "%s of %s has loaded it", c.name, c.actor))
				}
			}
			for _, d := range s.deliveries {
				m, _ := x.source(d.MessageID, d.Text, "")
				wrong := m != nil && m.chatID != "" && d.ChatID != "" && m.chatID != d.ChatID
				if wrong || stranger(d.ChatID) {
					detail := "%s of %s received %q as a message of this chat"
					broken = append(broken, violation(d.ChatID, d.MessageID, detail, c.name, c.actor, d.Text))
				}
			}
		}
	}
	return broken
}

func webhookCalled(x *index) (broken []Violation) {
	called := map[string]bool{}
	for _, w := range x.Webhooks {
		called[w.MessageID] = true
		called[runText.FindString(w.Text)] = true
	}
	for _, m := range x.messages {
		expected := m.expects(func(w Write) bool { return w.WebhookExpected })
		isCalled := m.id() != "" && called[m.id()] || m.text != "" && called[m.text]
		if m.side == Visitor && m.accepted() && expected && !isCalled {
			broken = append(broken, violation(m.chatID, m.id(), "no webhook received %q", m.text))
		}
	}
	return broken
}

func webhookID(x *index) (broken []Violation) {
	type event struct{ endpoint, kind, messageID string }
	ids := map[event]string{}
	events := map[string]event{} // by webhook-id
	for _, w := range x.Webhooks {
		if w.MessageID == "" || w.WebhookID == "" {
			continue
		}
		e := event{w.Endpoint, w.Type, w.MessageID}
		chatID := x.chatIDOf(w.MessageID)
		if id, known := ids[e]; known && id != w.WebhookID {
			detail := "%s received it with the webhook-id %s, then %s"
			broken = append(broken, violation(chatID, w.MessageID, detail, w.Endpoint, id, w.WebhookID))
		}
		if other, known := events[w.WebhookID]; known && other != e && other.endpoint == e.endpoint {
			detail := "%s received its webhook-id also with %s of %s"
			broken = append(broken, violation(chatID, w.MessageID, detail, w.Endpoint, other.kind, other.messageID))
		}
		ids[e] = w.WebhookID
		events[w.WebhookID] = e
	}
	return broken
}
