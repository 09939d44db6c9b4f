package nemesis

import (
	"bufio"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of faults. The tester injects them; Arg is zero where the kind does not name it.
const (
	Kill       = "kill"        // SIGKILL, started again at the end
	Term       = "term"        // a graceful stop, started again at the end
	Pause      = "pause"       // SIGSTOP, SIGCONT at the end
	Rolling    = "rolling"     // all replicas are restarted, one after the other
	ScaleUp    = "scale-up"    // Arg more replicas until the end
	ScaleDown  = "scale-down"  // Arg fewer replicas until the end
	Cut        = "cut"         // the link is down
	Delay      = "delay"       // the link delays by Arg milliseconds
	HalfOpen   = "half-open"   // the link accepts and takes, and forwards nothing
	NoAnswers  = "no-answers"  // the link forwards requests, and loses the answers
	Clock      = "clock"       // the clock is off by Arg milliseconds, up to ±2000
	ClockDrift = "clock-drift" // the clock gains Arg milliseconds a second, or loses them
	Forget     = "forget"      // Redis forgets everything, at once
	Fill       = "fill"        // the disk is full
	Slow       = "slow"        // the disk or the dependency takes Arg milliseconds longer
	Power      = "power"       // the machine stops and its disk loses what was not synced
	Leader     = "leader"      // NATS elects other leaders, at once
	Dead       = "dead"        // the webhook or the model answers with the status Arg
)

// kinds has for each kind of fault how its Arg is drawn; nil: it has none.
var kinds = map[string]func(*rand.Rand) int{
	Kill:       nil,
	Term:       nil,
	Pause:      nil,
	Rolling:    nil,
	ScaleUp:    func(*rand.Rand) int { return 1 },
	ScaleDown:  func(*rand.Rand) int { return 1 },
	Cut:        nil,
	Delay:      func(r *rand.Rand) int { return 10 + r.IntN(991) },
	HalfOpen:   nil,
	NoAnswers:  nil,
	Clock:      func(r *rand.Rand) int { return sign(r) * (1 + r.IntN(2000)) },
	ClockDrift: func(r *rand.Rand) int { return sign(r) * (1 + r.IntN(50)) },
	Forget:     nil,
	Fill:       nil,
	Slow:       func(r *rand.Rand) int { return 10 + r.IntN(991) },
	Power:      nil,
	Leader:     nil,
	Dead:       func(r *rand.Rand) int { return []int{400, 429, 500, 503}[r.IntN(4)] },
}

func sign(r *rand.Rand) int { return 1 - 2*r.IntN(2) }

// Fault is one fault of a timetable. Every fault ends.
type Fault struct {
	Kind   string
	Target string        // the name of a target
	At     time.Duration // since the start of the run
	For    time.Duration // zero: it ends at once
	Arg    int           // a number that the kind names
}

// String returns the fault as a line of a timetable, such as "12.5s clock processor-1 for 3s with -500".
func (f Fault) String() string {
	line := fmt.Sprintf("%s %s %s for %s", f.At, f.Kind, f.Target, f.For)
	if f.Arg != 0 {
		line += fmt.Sprintf(" with %d", f.Arg)
	}
	return line
}

// Target is a part of the topology that faults hit.
type Target struct {
	Name   string   // without spaces
	Kind   string   // service, engine, link, clock, disk, ...
	Faults []string // the kinds of faults that it accepts
}

// Timetable is the faults of a run, by their beginnings.
type Timetable []Fault

// String returns a line for each fault. [ParseTimetable] reads it.
func (t Timetable) String() string {
	var text strings.Builder
	for _, f := range t {
		text.WriteString(f.String() + "\n")
	}
	return text.String()
}

// The times of drawn faults: a burst of faults that overlap, then a pause in which the system recovers.
const (
	drawFirst = 2 * time.Second // the first burst begins after it
	drawBurst = 5               // faults of a burst, at most
	minFault  = time.Second / 2
	maxFault  = 8 * time.Second
	minPause  = time.Second
	maxPause  = 4 * time.Second
)

// Draw returns the faults that a seed yields for a run of the duration d: bursts of one to five faults on different
// targets, with pauses between the bursts: in a minute about eighteen, so that a run of a minute hits most services.
// Each kind that a target accepts is drawn as often as the others. All faults end within d.
func Draw(seed uint64, d time.Duration, targets []Target) Timetable {
	accepting := map[string][]string{} // the names of targets by the kind of fault
	for _, target := range targets {
		for _, kind := range target.Faults {
			accepting[kind] = append(accepting[kind], target.Name)
		}
	}
	drawable := make([]string, 0, len(accepting))
	for kind := range accepting {
		drawable = append(drawable, kind)
	}
	slices.Sort(drawable)
	if len(drawable) == 0 {
		return nil
	}

	r := rand.New(rand.NewPCG(seed, 0))
	var t Timetable
	for at := drawFirst; at+maxFault <= d; {
		end := at
		hit := map[string]bool{}
		for n := burst(r); n > 0; n-- {
			kind := drawable[r.IntN(len(drawable))]
			target := accepting[kind][r.IntN(len(accepting[kind]))]
			f := draw(r, kind, target, at)
			if hit[target] {
				continue // a target has one fault at a time
			}
			hit[target] = true
			t = append(t, f)
			end = max(end, f.At+f.For)
		}
		at = end + between(r, minPause, maxPause)
	}
	slices.SortStableFunc(t, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return t
}

// burst returns the number of faults of a burst. A third of all bursts is a single fault.
func burst(r *rand.Rand) int { return max(1, r.IntN(drawBurst+1)) }

// draw returns a fault that begins and ends within maxFault after from.
func draw(r *rand.Rand, kind, target string, from time.Duration) Fault {
	f := Fault{Kind: kind, Target: target}
	until := from + maxFault
	f.At = between(r, from, until-minFault)
	f.For = between(r, minFault, until-f.At)
	if kind == Forget || kind == Leader {
		f.For = 0
	}
	if arg := kinds[kind]; arg != nil {
		f.Arg = arg(r)
	}
	return f
}

// between returns a duration of whole tenths of a second, which are easier to read.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	const step = time.Second / 10
	return least + step*time.Duration(r.Int64N(int64((most-least)/step)+1))
}

// ParseTimetable reads what [Timetable.String] returns. Empty lines and lines that begin with # have no meaning.
func ParseTimetable(text string) (Timetable, error) {
	var t Timetable
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		f, err := parseFault(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		t = append(t, f)
	}
	return t, lines.Err()
}

func parseFault(fields []string) (f Fault, err error) {
	withArg := len(fields) == 7 && fields[5] == "with"
	if len(fields) < 5 || fields[3] != "for" || len(fields) > 5 && !withArg {
		return f, fmt.Errorf("got %q, want AT KIND TARGET for DURATION [with ARG]", strings.Join(fields, " "))
	}
	f.Kind, f.Target = fields[1], fields[2]
	if _, known := kinds[f.Kind]; !known {
		return f, fmt.Errorf("unknown kind of fault %q", f.Kind)
	}
	if f.At, err = parseDuration(fields[0]); err != nil {
		return f, err
	}
	if f.For, err = parseDuration(fields[4]); err != nil {
		return f, err
	}
	if withArg {
		f.Arg, err = strconv.Atoi(fields[6])
	}
	return f, err
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("negative duration %s", d)
	}
	return d, err
}
