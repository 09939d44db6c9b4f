package nemesis

import (
	"cmp"
	"slices"
)

// This file has the rules of the statuses of the company's messages, as an API and a webhook report them.

// statuses is the order of statuses. A retry may deliver what has failed.
var statuses = []string{"accepted", "stored", "failed", "delivered", "read"}

func statusUp(x *index) (broken []Violation) {
	type key struct{ messageID, source string }
	highest := map[key]int{}
	for _, s := range x.firstReports() {
		if s.Unordered {
			continue
		}
		of := key{s.MessageID, s.Source}
		rank := slices.Index(statuses, s.Name)
		if before, ok := highest[of]; ok && rank < before {
			detail := "%s reports %q after %q"
			chatID := x.chatIDOf(s.MessageID)
			broken = append(broken, violation(chatID, s.MessageID, detail, s.Source, s.Name, statuses[before]))
			continue
		}
		if rank >= 0 {
			highest[of] = rank
		}
	}
	return broken
}

// firstReports returns the reports of statuses in the order in which they arrived, without repetitions: a process that
// stood still may repeat a webhook after the next one.
func (x *index) firstReports() []Status {
	reports := slices.Clone(x.Statuses)
	slices.SortStableFunc(reports, func(a, b Status) int { return a.At.Compare(b.At) })
	reported := map[string]bool{}
	return slices.DeleteFunc(reports, func(s Status) bool {
		repeated := s.ReportID != "" && reported[s.ReportID]
		reported[s.ReportID] = true
		return repeated
	})
}

// told are the statuses of which webhooks are told. The API knows the others without a report.
var told = []string{"failed", "delivered", "read"}

// reports are the reports of a message's status.
type reports struct {
	api     Status // the last one; empty: none
	webhook []Status
}

// reportsOf returns the reports by the ids of the messages.
func (x *index) reportsOf() map[string]*reports {
	of := map[string]*reports{}
	for _, s := range x.firstReports() {
		known := cmp.Or(of[s.MessageID], &reports{})
		of[s.MessageID] = known
		if s.ReportID == "" {
			known.api = s
		} else {
			known.webhook = append(known.webhook, s)
		}
	}
	return of
}

func statusTold(x *index) (broken []Violation) {
	of := x.reportsOf()
	for _, m := range x.messages {
		known := of[m.id()]
		if known == nil || known.api.Name == "" || !m.expects(func(w Write) bool { return w.WebhookExpected }) {
			continue
		}
		times := map[string]int{}
		for _, s := range known.webhook {
			times[s.Name]++
			if times[s.Name] == 2 {
				broken = append(broken, violation(m.chatID, m.id(), "the webhook was told %q again", s.Name))
			}
			beyond := slices.Index(statuses, s.Name) > slices.Index(statuses, known.api.Name)
			if beyond && s.At.Before(known.api.At) {
				detail := "the webhook was told %q, the API says %q"
				broken = append(broken, violation(m.chatID, m.id(), detail, s.Name, known.api.Name))
			}
		}
		if slices.Contains(told, known.api.Name) && times[known.api.Name] == 0 {
			broken = append(broken, violation(m.chatID, m.id(), "no webhook was told %q", known.api.Name))
		}
	}
	return broken
}
