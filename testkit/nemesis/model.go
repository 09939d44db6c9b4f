package nemesis

import (
	"slices"
	"strings"

	pkgchat "github.com/parley-chat/parley/pkg/chat"
)

// This file has the rules of answers that a language model writes, and finds the question of a failure text.

// FailureText is what a visitor gets if the model gives no answer. It has no text of the run: the id of the message
// tells the question.
const FailureText = "The model has not answered."

// failureNumber is the number of the failure text among the answers to a question: no answer has it.
const failureNumber = 10

// failureID returns the id of the failure text for a question.
func failureID(questionID string) string { return pkgchat.AnswerID(questionID, failureNumber) }

// addFailures finds the ids that the failure texts of the known questions have.
func (x *index) addFailures() {
	for _, m := range x.messages {
		if m.side != Visitor {
			continue
		}
		for _, id := range m.answered {
			x.failures[failureID(id)] = m
		}
		for id := range m.seen {
			x.failures[failureID(id)] = m
		}
	}
}

// completionsFor returns what the model wrote to the question that a message answers.
func (x *index) completionsFor(answerID string) (all []Completion) {
	question := x.questions[answerID]
	if question == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(x.Completions), func(c Completion) bool {
		return c.Question != question.text
	})
}

func begins(with string) func(Completion) bool {
	return func(c Completion) bool { return strings.HasPrefix(c.Text, with) }
}

func answerOfModel(x *index) (broken []Violation) {
	if len(x.Completions) == 0 {
		return nil // another bot answers
	}
	for _, c := range x.chats {
		for _, v := range c.views {
			for _, seen := range v.Messages {
				if x.questions[seen.ID] == nil || seen.Text == FailureText {
					continue
				}
				written := begins(seen.Text)
				if seen.FinishReason == "" {
					written = func(c Completion) bool { return c.Ended && c.Text == seen.Text }
				}
				if !slices.ContainsFunc(x.completionsFor(seen.ID), written) {
					detail := "%s has %q, finish reason %q, which the model did not write"
					broken = append(broken, violation(c.id, seen.ID, detail, v.Reader, seen.Text, seen.FinishReason))
				}
			}
		}
	}
	return broken
}

func partsAgree(x *index) (broken []Violation) {
	final := map[string]string{}
	for _, c := range x.chats {
		if c.history == nil {
			continue
		}
		for _, m := range c.history.Messages {
			final[m.ID] = m.Text
		}
	}
	for _, d := range x.Drafts {
		text, isKept := final[d.MessageID]
		switch {
		case !isKept:
			// The rule of answers tells if the message is missing: the failure text may have followed instead.
		case d.Whole && d.Text != text:
			detail := "%s has put %q together from all parts, the message is %q"
			broken = append(broken, violation(d.ChatID, d.MessageID, detail, d.Client, d.Text, text))
		case !slices.ContainsFunc(x.completionsFor(d.MessageID), begins(d.Text)):
			detail := "%s has put %q together, which the model did not write"
			broken = append(broken, violation(d.ChatID, d.MessageID, detail, d.Client, d.Text))
		}
	}
	return broken
}

// invented returns a violation for each failure text that answers no known question.
func (x *index) invented() (broken []Violation) {
	reported := map[string]bool{}
	x.eachSeen(func(s seen) {
		if s.text != FailureText || x.failures[s.id] != nil || reported[s.id] {
			return
		}
		reported[s.id] = true
		broken = append(broken, violation(s.chatID, s.id, "%s has a failure text that answers no question", s.reader))
	})
	return broken
}
