package nemesis

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report is what a run has shown.
type Report struct {
	Seed       uint64
	Begun      time.Time
	Ended      time.Time
	Record     *Record // with the faults as they were injected
	Violations []Violation
	Timetable  Timetable // as it was drawn
	Shrunk     Timetable // nil: it was not shrunk; empty: the run is broken without faults
}

// WriteReport writes a report in Markdown.
func WriteReport(w io.Writer, r Report) error {
	r.Record.mu.Lock()
	defer r.Record.mu.Unlock()
	x := newIndex(&r.Record.notes)
	var text strings.Builder
	r.writeSummary(&text, x)
	writeWaits(&text, x)
	r.writeFaults(&text, x)
	r.writeRules(&text)
	_, err := io.WriteString(w, text.String())
	return err
}

func (r Report) writeSummary(to *strings.Builder, x *index) {
	lasted := r.Ended.Sub(r.Begun)
	fmt.Fprintf(to, "# Nemesis, seed %d\n\n", r.Seed)
	fmt.Fprintf(to, "From %s, %s. ", r.Begun.UTC().Format(time.RFC3339), lasted.Round(time.Second))
	fmt.Fprintf(to, "%d faults, %d broken promises.\n\n", len(x.Faults), len(r.Violations))

	accepted, refused, failed := 0, 0, 0
	for _, w := range x.Writes {
		switch {
		case w.Accepted():
			accepted++
		case w.Status > 0:
			refused++
		default:
			failed++
		}
	}
	fmt.Fprintf(to, "| requests to write | count | per second |\n|---|---|---|\n")
	for _, row := range []struct {
		name  string
		count int
	}{{"accepted", accepted}, {"refused", refused}, {"without an answer", failed}} {
		fmt.Fprintf(to, "| %s | %d | %.1f |\n", row.name, row.count, float64(row.count)/max(lasted.Seconds(), 1))
	}
	sessions := 0
	for _, c := range x.clients {
		sessions += len(c.sessions)
	}
	fmt.Fprintf(to, "\nRead: %d messages of %d chats, %d views; %d sessions of %d clients, %d deliveries; "+
		"%d webhooks, %d statuses, %d counts of unread messages.\n",
		len(x.messages), len(x.chats), len(x.Views), sessions, len(x.clients), len(x.Deliveries),
		len(x.Webhooks), len(x.Statuses), len(x.Unread))
	if len(x.Completions) > 0 {
		failures := slices.DeleteFunc(slices.Collect(maps.Keys(x.questions)), func(id string) bool {
			return x.failures[id] == nil
		})
		const line = "\nThe model wrote %d answers, %d questions got the failure text. " +
			"Clients put %d messages together.\n"
		fmt.Fprintf(to, line, len(x.Completions), len(failures), len(x.Drafts))
	}
}

// wait is the time of a message on its way to a client.
type wait struct {
	written  period    // from the beginning of the write to its success
	received time.Time // by the client
	isAnswer bool      // of the bot: the write is the question
}

func (w wait) duration() time.Duration { return max(0, w.received.Sub(w.written.until)) }

// waits returns a wait for each message that a client received, the first time.
func (x *index) waits() (all []wait) {
	for _, c := range x.clients {
		received := map[string]bool{}
		for _, s := range c.sessions {
			for _, d := range s.deliveries {
				m, isAnswer := x.source(d.MessageID, d.Text, "")
				late := received[d.MessageID] || s.loaded[d.MessageID]
				received[d.MessageID] = true
				if m != nil && m.accepted() && !late {
					all = append(all, wait{m.written(), d.At, isAnswer})
				}
			}
		}
	}
	return all
}

func writeWaits(to *strings.Builder, x *index) {
	fmt.Fprint(to, "\n## Waiting times\n\nFrom the success of a write to its delivery at each client.\n")
	fmt.Fprint(to, "Of an answer: from the success of the question.\n\n")
	fmt.Fprint(to, "| | deliveries | p50 | p99 | longest |\n|---|---|---|---|---|\n")
	waits := x.waits()
	row := func(name string, selected func(wait) bool) {
		var durations []time.Duration
		for _, w := range waits {
			if selected(w) {
				durations = append(durations, w.duration())
			}
		}
		slices.Sort(durations)
		fmt.Fprintf(to, "| %s | %d | %s | %s | %s |\n", name, len(durations),
			quantile(durations, 50), quantile(durations, 99), quantile(durations, 100))
	}
	row("messages", func(w wait) bool { return !w.isAnswer })
	row("answers", func(w wait) bool { return w.isAnswer })
	spans := map[string][]period{}
	for _, f := range x.Faults {
		spans[f.Fault.Kind] = append(spans[f.Fault.Kind], period{f.Begun, f.Ended})
	}
	for _, kind := range slices.Sorted(maps.Keys(spans)) {
		row("during "+kind, func(w wait) bool {
			return slices.ContainsFunc(spans[kind], period{w.written.from, w.received}.overlaps)
		})
	}
}

// quantile returns the value that a percentage of sorted durations does not exceed.
func quantile(sorted []time.Duration, percent int) string {
	if len(sorted) == 0 {
		return "-"
	}
	n := (len(sorted)*percent + 99) / 100
	return sorted[n-1].Round(time.Millisecond).String()
}

func (r Report) writeFaults(to *strings.Builder, x *index) {
	fmt.Fprint(to, "\n## Faults\n\n```\n")
	for _, f := range x.Faults {
		fmt.Fprintf(to, "%s to %s  %s", clock(f.Begun), clock(f.Ended), f.Fault)
		if f.Err != "" {
			fmt.Fprintf(to, "  failed: %s", f.Err)
		}
		fmt.Fprintln(to)
	}
	fmt.Fprintf(to, "```\n\nThe timetable:\n\n```\n%s```\n", r.Timetable)
	switch {
	case r.Shrunk == nil:
	case len(r.Shrunk) == 0:
		fmt.Fprint(to, "\nThe run is broken without faults, too.\n")
	default:
		fmt.Fprintf(to, "\nOf these, the following are enough:\n\n```\n%s```\n", r.Shrunk)
	}
}

func (r Report) writeRules(to *strings.Builder) {
	byRule := map[string][]Violation{}
	for _, v := range r.Violations {
		byRule[v.Rule] = append(byRule[v.Rule], v)
	}
	fmt.Fprint(to, "\n## Rules\n\n| rule | what holds | broken |\n|---|---|---|\n")
	for _, rule := range Rules() {
		fmt.Fprintf(to, "| %s | %s | %d |\n", rule.Name, rule.Sentence, len(byRule[rule.Name]))
	}
	for _, rule := range Rules() {
		broken := byRule[rule.Name]
		if len(broken) == 0 {
			continue
		}
		fmt.Fprintf(to, "\n### %s\n", rule.Name)
		for _, v := range broken[:min(len(broken), maxHistories)] {
			fmt.Fprintf(to, "\nChat %s, message %s: %s.\n\n```\n", v.ChatID, v.MessageID, v.Detail)
			for _, line := range v.History {
				fmt.Fprintln(to, line)
			}
			fmt.Fprint(to, "```\n")
		}
		if more := len(broken) - maxHistories; more > 0 {
			fmt.Fprintf(to, "\nAnd %d more.\n", more)
		}
	}
}
