package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tally counts what happened in a world.
type tally struct {
	accepted atomic.Int64 // messages that were answered with a success
	refused  atomic.Int64 // requests of the load that were answered with an error
	cuts     int
	restarts atomic.Int64 // of processes that had read a message that was not on the disk yet, and was lost
	faults   map[string]int
}

// logTally logs what happened, at the end of a world.
func (w *cutWorld) logTally(variant string) {
	faults := "none"
	if len(w.tally.faults) > 0 {
		faults = ""
		for _, kind := range slices.Sorted(maps.Keys(w.tally.faults)) {
			faults += fmt.Sprintf("; %d %s", w.tally.faults[kind], kind)
		}
		faults = strings.TrimPrefix(faults, "; ")
	}
	w.t.Logf(
		"tally of %s: %d cuts, %d accepted, %d refused, %d restarts, "+
			"%d resets of the present panel, %d of the absent one; faults: %s",
		variant, w.tally.cuts, w.tally.accepted.Load(), w.tally.refused.Load(), w.tally.restarts.Load(),
		w.present.countResets(), w.absent.countResets(), faults,
	)
}

// fault is something that must not be.
type fault struct {
	kind string
	of   string
}

// report fails the test for each kind of fault once, with an example.
func (w *cutWorld) report(t *testing.T, where string, faults []fault) {
	t.Helper()
	if w.tally.faults == nil {
		w.tally.faults = map[string]int{}
	}
	count, example := map[string]int{}, map[string]string{}
	for _, f := range faults {
		w.tally.faults[f.kind]++
		count[f.kind]++
		example[f.kind] = f.of
	}
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		t.Errorf("%s: %d %s, for example %s", where, count[kind], kind, example[kind])
	}
}

// check checks the history, then what the client and the panels have received of it. Faults are reported once.
func (w *cutWorld) check(t *testing.T, m *member, deadline time.Time) {
	t.Helper()
	var history []record
	var faults []fault
	until(deadline, func() bool {
		history = m.history(t)
		faults = m.historyFaults(t, history)
		return len(faults) == 0
	})
	w.report(t, "the history of "+m.email, faults)
	if len(faults) > 0 {
		m.attempts = nil
	}

	sides := sidesOf(t, history)
	live := map[string][]string{"company ": sides["company "], "bot ": sides["bot "]}
	m.readUntil(t, time.After(time.Until(deadline)), func() bool { return hasEnds(m.seen, live) })
	faults = nil
	for name, ids := range live {
		faults = append(faults, receivedFaults("a client", name, m.seen, ids, false)...)
	}
	client := fmt.Sprintf(
		"the client of %s on %v (online: %v, recovered: %v)", m.email, m.transports, m.online, m.recovered,
	)
	w.report(t, client, faults)
	if len(faults) > 0 {
		m.seen, m.loaded = nil, nil
	}
	for name, a := range map[string]*agent{"present": w.present, "absent": w.absent} {
		var shown []string
		var whole bool
		until(deadline, func() bool {
			shown, whole = a.shown(m.chatID)
			return hasEnds(shown, sides)
		})
		faults = nil
		if !whole {
			shown = sorted(shown, history)
		}
		for name, ids := range sides {
			faults = append(faults, receivedFaults("a panel", name, shown, ids, whole)...)
		}
		w.report(t, "the "+name+" panel, the chat of "+m.email, faults)
		if len(faults) > 0 {
			a.forget(m.chatID)
		}
	}
}

// until polls for a state that no event announces.
func until(deadline time.Time, done func() bool) {
	for !done() && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
}

// historyFaults returns what is wrong in the history.
func (m *member) historyFaults(t *testing.T, history []record) (faults []fault) {
	t.Helper()
	index := map[string]int{} // by id
	texts := map[string]int{} // how often a side has said it: a number
	for i, r := range history {
		if _, twice := index[r.ID]; twice {
			faults = append(faults, fault{"ids twice in a history", r.ID})
		}
		index[r.ID] = i
		text := r.member(t, "text")
		if at := strings.Index(text, "number "); at >= 0 {
			texts[side(r)+text[at:strings.Index(text, ".")]]++
		}
	}
	last := map[bool]int{} // the place of each side's last message
	for _, a := range m.attempts {
		at, there := index[a.id]
		number := strings.TrimSuffix(a.text, ".")
		switch said := texts[a.side()+number]; {
		case !there:
			faults = append(faults, fault{"accepted messages lost", a.side() + a.text})
		case said != 1:
			faults = append(faults, fault{"messages doubled in a history", a.side() + a.text})
		case at < last[a.company]:
			faults = append(faults, fault{"messages out of order in a history", a.side() + a.text})
		}
		last[a.company] = max(last[a.company], at)
		if a.company || texts["bot "+number] == 1 {
			continue
		}
		kind := "answers of the bot missing"
		if texts["bot "+number] > 1 {
			kind = "answers of the bot doubled"
		}
		faults = append(faults, fault{kind, a.text})
	}
	return faults
}

// sidesOf returns the ids of the numbered messages, by side: all but the greetings.
func sidesOf(t *testing.T, history []record) map[string][]string {
	t.Helper()
	sides := map[string][]string{}
	for _, r := range history {
		if strings.Contains(r.member(t, "text"), "number ") {
			sides[side(r)] = append(sides[side(r)], r.ID)
		}
	}
	return sides
}

// side returns "visitor ", "company " or "bot ", for a message with a number.
func side(r record) string {
	switch {
	case !r.IsFromSupport:
		return "visitor "
	case strings.HasPrefix(string(r.Data), `{"text":"number `):
		return "company "
	}
	return "bot "
}

// ending returns the last messages of a side: those after the cut, at least.
func ending(ids []string) []string { return ids[max(0, len(ids)-3):] }

// hasEnds reports whether the ends of all sides were received.
func hasEnds(received []string, sides map[string][]string) bool {
	for _, ids := range sides {
		for _, id := range ending(ids) {
			if !slices.Contains(received, id) {
				return false
			}
		}
	}
	return true
}

// sorted returns ids in the order of the history.
func sorted(ids []string, history []record) []string {
	place := map[string]int{}
	for i, r := range history {
		place[r.ID] = i
	}
	ids = slices.Clone(ids)
	slices.SortStableFunc(ids, func(a, b string) int { return place[a] - place[b] })
	return ids
}

// receivedFaults returns what a receiver got wrong of a side. It must have each message once since the first one that
// it has, or all if it has read from the start, in the order of the history. Two sides that write in the same
// millisecond may be in another order live.
func receivedFaults(
	receiver, side string, received, history []string, whole bool,
) (faults []fault) {
	place := map[string]int{}
	for i, id := range history {
		place[id] = i
	}
	var got []string
	for _, id := range received {
		if _, ok := place[id]; ok {
			got = append(got, id)
		}
	}
	want := ending(history)
	switch {
	case whole:
		want = history
	case len(got) > 0:
		want = history[min(place[got[0]], len(history)-len(want)):]
	}
	if slices.Equal(got, want) {
		return nil
	}
	times := map[string]int{}
	for i, id := range got {
		times[id]++
		switch {
		case times[id] > 1:
			faults = append(faults, fault{"messages doubled at " + receiver, side + id})
		case i > 0 && place[id] < place[got[i-1]]:
			faults = append(faults, fault{"messages out of order at " + receiver, side + id})
		}
	}
	for _, id := range want {
		if times[id] == 0 {
			faults = append(faults, fault{"messages missing at " + receiver, side + id})
		}
	}
	return faults
}
