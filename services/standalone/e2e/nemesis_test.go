package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nemesis"
	"github.com/parley-chat/parley/testkit/opstest"
)

// TestNemesis lets visitors, a company and its agents talk while faults hit the processes, the network between them,
// their clocks and their disk, and checks afterwards that every promise was kept: testkit/nemesis has the rules.
//
// SEED decides what happens, for MINUTES: always the same in make test-all, so that a new fault that another seed would
// find stops no other work; make test-nemesis draws a seed. TIMETABLE, a text, replaces the faults that the seed yields. RUNS is the
// number of runs, with the next seeds, until one breaks a promise. NEMESIS_REPORT is a folder for the report, the
// record and the logs of each run. With SHRINK=1 the run that breaks a promise is repeated with fewer faults.
//
// nemesis_world_test.go has what faults hit, nemesis_fault_test.go the faults, nemesis_actor_test.go what visitors and
// the agents do, nemesis_company_test.go what the company does, nemesis_client_test.go and nemesis_draft_test.go the
// browsers, nemesis_widget_test.go the widget, nemesis_webhook_test.go the company's server, nemesis_model_test.go the
// language model, nemesis_dependency_test.go how both fail, and nemesis_view_test.go what readers have in the end.
func TestNemesis(t *testing.T) {
	needs.Packages(t)
	needs.Program(t, "redis-server")
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	first := setting(t, "SEED", 16)
	r := nemesisRun{duration: time.Duration(setting(t, "MINUTES", 3)) * time.Minute}
	if text := os.Getenv("TIMETABLE"); text != "" {
		faults, err := nemesis.ParseTimetable(text)
		check(t, err)
		r.faults = &faults
	}
	for n := range setting(t, "RUNS", 1) {
		r.seed = first + n
		if r.once(t, fmt.Sprint("seed ", r.seed)); t.Failed() {
			return
		}
	}
}

// once runs as a subtest, and reports.
func (r nemesisRun) once(t *testing.T, name string) {
	t.Helper()
	report := nemesis.Report{Seed: r.seed, Begun: time.Now()}
	r.name = strings.ReplaceAll(name, " ", "-")
	t.Run(name, func(t *testing.T) { r.run(t, &report) })
	report.Ended = time.Now()
	if os.Getenv("SHRINK") == "1" && len(report.Violations) > 0 {
		report.Shrunk = r.shrink(t, report)
		t.Logf("%d faults suffice:\n%s", len(report.Shrunk), report.Shrunk)
	}
	r.report(t, report)
}

// nemesisRun says what happens in a run.
type nemesisRun struct {
	seed     uint64
	duration time.Duration
	faults   *nemesis.Timetable                  // nil: those that the seed yields
	start    func(t *testing.T, w *nemesisWorld) // starts the processes; nil: those that the seed yields
	name     string                              // of what is kept of the run; empty: nothing is
}

// kept returns the path without an extension of what is kept of the run; empty: nothing is.
func (r nemesisRun) kept() string {
	dir := os.Getenv("NEMESIS_REPORT")
	if dir == "" || r.name == "" {
		return ""
	}
	return filepath.Join(dir, "nemesis-"+r.name)
}

// mostRepeated bounds how often a run is repeated to find the faults that suffice.
const mostRepeated = 8

// shrink returns the faults that suffice to break one of the rules that the run has broken.
func (r nemesisRun) shrink(t *testing.T, first nemesis.Report) nemesis.Timetable {
	t.Helper()
	r.name = "" // the logs are those of the first run
	rules := map[string]bool{}
	for _, v := range first.Violations {
		rules[v.Rule] = true
	}
	return nemesis.Shrink(t.Context(), first.Timetable, mostRepeated, func(faults nemesis.Timetable) bool {
		r.faults = &faults
		var again nemesis.Report
		t.Run("again", func(t *testing.T) { r.run(t, &again) })
		return slices.ContainsFunc(again.Violations, func(v nemesis.Violation) bool { return rules[v.Rule] })
	})
}

// lastWords is how many messages each writes when all faults have ended.
const lastWords = 3

// run runs once.
func (r nemesisRun) run(t *testing.T, report *nemesis.Report) {
	t.Logf("SEED=%d for %v", r.seed, r.duration)
	w := newNemesisWorld(t, r.seed, r.kept())
	start := r.start
	if start == nil {
		start = w.topology()
	}
	start(t, w)
	report.Record = w.record
	report.Timetable = nemesis.Draw(r.seed, r.duration, w.targets())
	if r.faults != nil {
		report.Timetable = *r.faults
	}
	w.checkTimetable(t, report.Timetable)
	over, stop := context.WithCancel(context.Background())
	defer stop()
	w.over = over
	w.populate(t)
	acting, finish := context.WithTimeout(over, r.duration)
	defer finish()
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		w.act(acting, t)
	}()
	w.suffer(acting, t, report.Timetable)
	<-acting.Done()
	t.Logf("all faults have ended: %d messages were accepted, %d attempts failed", w.accepted.Load(), w.failed.Load())
	ended := time.Now()
	w.awaitRecovery()
	t.Logf("all services are ready %v after the last fault", time.Since(ended).Round(time.Millisecond))
	select {
	case <-acted:
	case <-time.After(quietLimit):
		w.breach(ruleRecovers, "writers get no answers %v after the last fault", quietLimit)
		stop()
		<-acted
	}
	t.Logf("all writers have their answers after %v", time.Since(ended).Round(time.Millisecond))
	unsettled := time.AfterFunc(2*quietLimit, func() {
		w.breach(ruleRecovers, "the last messages are not accepted %v after the last fault", 2*quietLimit)
		stop()
	})
	w.settle(t)
	unsettled.Stop()
	t.Logf("all clients are connected after %v", time.Since(ended).Round(time.Millisecond))
	w.awaitQuiet(t)
	t.Logf("nothing arrives any more after %v", time.Since(ended).Round(time.Millisecond))
	w.collect(t)
	t.Logf("the record is complete after %v", time.Since(ended).Round(time.Millisecond))
	report.Violations = w.check()
	w.closeTabs(t)
	logViolations(t, report.Violations)
	t.Logf("%d messages were accepted, %d attempts failed, %d restarts after a lost tail",
		w.accepted.Load(), w.failed.Load(), w.restarts.Load())
}

// mostLogged bounds the violations of a rule that a test logs with their history.
const mostLogged = 2

// logViolations fails the test for each rule that is broken, with the first violations and their number.
func logViolations(t *testing.T, violations []nemesis.Violation) {
	t.Helper()
	count := map[string]int{}
	for _, v := range violations {
		count[v.Rule]++
		if count[v.Rule] <= mostLogged {
			story := strings.Join(v.History, "\n\t")
			t.Errorf("broken rule %s: chat %s, message %s: %s\n\t%s", v.Rule, v.ChatID, v.MessageID, v.Detail, story)
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(count)) {
		t.Errorf("broken rule %s: %d times", rule, count[rule])
	}
}

// awaitRecovery waits until all services are ready.
func (w *nemesisWorld) awaitRecovery() {
	deadline := time.Now().Add(quietLimit)
	for _, name := range w.running() {
		var state opstest.State
		var err error
		until(deadline, func() bool {
			state, err = opstest.Read("http://" + w.ops[name])
			return err == nil && state.AllUp()
		})
		if err != nil || !state.AllUp() {
			w.breach(ruleRecovers, "%s is not ready %v after the last fault: %+v, %v", name, quietLimit, state, err)
		}
	}
}

// settle opens the closed clients again, waits until all are connected, and lets all write a little.
func (w *nemesisWorld) settle(t *testing.T) {
	t.Helper()
	for _, g := range w.guests {
		for n, b := range g.tabs {
			if b == nil {
				g.open(t, n)
			}
		}
	}
	deadline := time.Now().Add(quietLimit)
	for _, g := range w.guests {
		g.handedBack = g.inTurns
		for _, b := range g.tabs {
			b.awaitOnline(t, deadline)
		}
	}
	for _, a := range w.agents {
		a.awaitLive(t, deadline)
	}
	chance := w.chance("last words")
	for range lastWords {
		for _, g := range w.guests {
			g.say()
			w.writers[0].say(w, chance, g)
			if g.byAgent {
				w.sayAsAgent(chance, "agent-1", w.agents[0], g)
			}
		}
	}
}

// closeTabs closes all clients. Their record is complete then.
func (w *nemesisWorld) closeTabs(t *testing.T) {
	t.Helper()
	for _, g := range w.guests {
		for _, b := range g.tabs {
			b.close(t)
		}
		if g.page != nil {
			g.page.close(t)
		}
	}
}

// report keeps the report and the record, if NEMESIS_REPORT says where.
func (r nemesisRun) report(t *testing.T, report nemesis.Report) {
	t.Helper()
	path := r.kept()
	if path == "" || report.Record == nil {
		return
	}
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, report.Record.Save(path+".json"))
	file, err := os.Create(path + ".md")
	check(t, err)
	defer file.Close()
	check(t, nemesis.WriteReport(file, report))
	t.Logf("the report is %s.md", path)
}
