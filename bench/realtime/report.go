package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// line is one line of the main table: a figure of each contender, and our target.
type line struct {
	figure string
	unit   string
	of     func(*figures) float64 // NaN if not measured
	target string
	// met checks our value and its ratio to Node's; without it, our value must be 0 (if there is a target).
	met func(ours, ratio float64) bool
}

func atMost(r float64) func(float64, float64) bool {
	return func(_, ratio float64) bool { return ratio <= r }
}

func atLeast(r float64) func(float64, float64) bool {
	return func(_, ratio float64) bool { return ratio >= r }
}

// report formats the results as Markdown.
func report(z sizes, results map[string]*figures) string {
	w := new(strings.Builder)
	fmt.Fprintf(w, "Realtime, %s, %d cores, %s.\n\n", time.Now().Format("2006-01-02"), runtime.NumCPU(), runtime.Version())
	if z.idle < fullSizes().idle {
		fmt.Fprint(w, "Small sizes: this only checks that the benchmark works. The figures and results are not meaningful.\n\n")
	}
	reportLines(w, z, results)
	reportBroadcast(w, z, results)
	reportRedis(w, results)
	reportGrowth(w, z, results)
	reportReaders(w, z, results)
	reportParts(w, z, results["parley"])
	return w.String()
}

func reportLines(w *strings.Builder, z sizes, results map[string]*figures) {
	if !slices.ContainsFunc([]string{"node", "node-sharded", "parley"}, func(name string) bool {
		f := results[name]
		return f != nil && (f.idle != nil || f.paced != nil)
	}) {
		return
	}
	fmt.Fprintln(w, "| figure | Node | Node, sharded | Parley | Parley : Node | target | met |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, l := range lines(z) {
		l.print(w, results)
	}
}

func lines(z sizes) []line { return append(idleLines(z), pacedLines(z)...) }

func idleLines(z sizes) []line {
	of := func(value func(idleFigure) float64) func(*figures) float64 {
		return func(f *figures) float64 {
			if f.idle == nil {
				return math.NaN()
			}
			return value(*f.idle)
		}
	}
	perConnection := of(func(f idleFigure) float64 { return f.perConnection() / 1024 })
	whole := of(func(f idleFigure) float64 { return float64(f.after) / (1 << 20) })
	rate := of(func(f idleFigure) float64 { return f.rate() })
	lost := of(func(f idleFigure) float64 { return float64(f.lost()) })
	return []line{
		{fmt.Sprintf("memory per idle connection, 0 to %d", z.idle), "KB", perConnection, "at most 1/2", atMost(0.5)},
		{fmt.Sprintf("whole process at %d", z.idle), "MB", whole, "at most 1/2", atMost(0.5)},
		{"handshakes (websocket, token, CONNECT, join)", "/s", rate, "at least 2x", atLeast(2)},
		{fmt.Sprintf("handshakes lost of %d", z.idle), "", lost, "0", nil},
	}
}

func pacedLines(z sizes) []line {
	of := func(value func(pacedFigure) float64) func(*figures) float64 {
		return func(f *figures) float64 {
			if f.paced == nil {
				return math.NaN()
			}
			return value(*f.paced)
		}
	}
	gateways := of(func(f pacedFigure) float64 { return f.cost.cpuPerThousand() })
	engines := of(func(f pacedFigure) float64 { return f.cost.enginesPerThousand() })
	p99 := of(func(f pacedFigure) float64 { return milliseconds(f.latency.p99) })
	ceiling := of(func(f pacedFigure) float64 { return float64(f.ceiling) })
	lost := of(func(f pacedFigure) float64 { return float64(f.over.lost()) })
	doubled := of(func(f pacedFigure) float64 { return float64(f.over.doubled) })
	disordered := of(func(f pacedFigure) float64 { return float64(f.over.disordered) })
	at := func(p pace) string { return fmt.Sprintf("2 gateways, %d rooms, %d replies/s: ", z.rooms, p.rate) }
	over := fmt.Sprintf("overloaded, %d/s, of %d: ", z.over.rate, z.over.total())
	return []line{
		{at(z.cost) + "CPU per 1,000 deliveries", "s", gateways, "at most 1/2", atMost(0.5)},
		{"the same, CPU of Redis and NATS", "s", engines, "", nil},
		{at(z.latency) + "p99", "ms", p99, "at most 1/2", atMost(0.5)},
		{fmt.Sprintf("highest rate with p99 under %v", z.bound), "/s", ceiling, "at least 2x", atLeast(2)},
		{over + "lost", "", lost, "0", nil},
		{over + "doubled", "", doubled, "0", nil},
		{over + "out of order", "", disordered, "0", nil},
		{"all paced loads: lost, doubled, out of order, astray, refused", "", of(pacedFigure.faults), "0", nil},
	}
}

// faults counts lost, doubled, disordered, astray and refused replies over all measured paced loads.
func (f pacedFigure) faults() (n float64) {
	for _, o := range []outcome{f.latency, f.cost, f.over} {
		n += float64(o.lost() + o.doubled + o.disordered + o.astray + o.refused)
	}
	return n
}

func (l line) print(w *strings.Builder, results map[string]*figures) {
	value := func(name string) float64 {
		if f := results[name]; f != nil {
			return l.of(f)
		}
		return math.NaN()
	}
	node, sharded, parley := value("node"), value("node-sharded"), value("parley")
	if math.IsNaN(node) && math.IsNaN(sharded) && math.IsNaN(parley) {
		return
	}
	ratio := parley / node
	fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", l.figure, number(node, l.unit), number(sharded, l.unit),
		number(parley, l.unit), number(ratio, ""), l.target, l.result(parley, ratio))
}

func (l line) result(ours, ratio float64) string {
	switch {
	case l.target == "":
		return ""
	case l.met == nil:
		return targetMet(ours, ours == 0)
	}
	return targetMet(ratio, l.met(ours, ratio))
}

func targetMet(ours float64, met bool) string {
	switch {
	case math.IsNaN(ours):
		return ""
	case met:
		return "yes"
	default:
		return "**no**"
	}
}

// number prints a figure with its significant digits.
func number(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) && unit == "" {
		return ""
	}
	digits := 0
	switch {
	case math.IsInf(v, 0):
		return "endless"
	case v == math.Trunc(v):
	case v < 1:
		digits = 3
	case v < 10:
		digits = 2
	case v < 100:
		digits = 1
	}
	return strings.TrimSpace(fmt.Sprintf("%.*f %s", digits, v, unit))
}

func milliseconds(d time.Duration) float64 {
	if d == endless {
		return math.Inf(1)
	}
	return d.Seconds() * 1000
}

func reportBroadcast(w *strings.Builder, z sizes, results map[string]*figures) {
	bare := median(results["bare"].broadcast, outcome.rate)
	if math.IsNaN(bare) {
		return
	}
	fmt.Fprintf(w, "\nBroadcast of %d events to one room of %d, one gateway; median of %d.\n\n", z.events, z.crowd, z.bursts)
	fmt.Fprintln(w, "| | deliveries/s | of the bare loop | CPU s per 1,000 | lost, doubled, out of order | target | met |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, name := range []string{"bare", "node", "parley"} {
		if results[name] == nil || results[name].broadcast == nil {
			continue
		}
		bursts := results[name].broadcast
		rate, faults := median(bursts, outcome.rate), 0
		for _, o := range bursts {
			faults += o.lost() + o.doubled + o.disordered + o.astray
		}
		target, met := "", ""
		if name == "parley" {
			target, met = "at least 80%", targetMet(rate, rate >= 0.8*bare && faults == 0)
		}
		fmt.Fprintf(w, "| %s | %.0f | %.0f%% | %s | %d | %s | %s |\n", label(name), rate, 100*rate/bare,
			number(median(bursts, outcome.cpuPerThousand), ""), faults, target, met)
	}
}

func median(outcomes []outcome, of func(outcome) float64) float64 {
	if len(outcomes) == 0 {
		return math.NaN()
	}
	values := make([]float64, len(outcomes))
	for i, o := range outcomes {
		values[i] = of(o)
	}
	return rig.Median(values)
}

func label(name string) string {
	switch name {
	case "bare":
		return "bare loop, prebuilt frames"
	case "node":
		return "Node"
	case "node-sharded":
		return "Node, sharded"
	default:
		return "Parley"
	}
}

// constant is the accepted ratio of the bytes that Redis sends with three gateways and with one.
const constant = 1.05

func reportRedis(w *strings.Builder, results map[string]*figures) {
	printed := false
	for _, name := range []string{"node", "node-sharded", "parley"} {
		f := results[name]
		if f == nil || len(f.redis) < 3 {
			continue
		}
		if !printed {
			fmt.Fprint(w, "\nBytes that Redis sends for one reply.\n\n")
			fmt.Fprint(w, "| | 1 gateway | 2 gateways | 3 gateways | target | met |\n|---|---|---|---|---|---|\n")
			printed = true
		}
		target, met := "", ""
		if name == "parley" {
			target, met = "constant", targetMet(f.redis[0], slices.Max(f.redis) <= constant*slices.Min(f.redis))
		}
		fmt.Fprintf(w, "| %s | %.0f | %.0f | %.0f | %s | %s |\n", label(name), f.redis[0], f.redis[1], f.redis[2], target, met)
	}
}

func reportGrowth(w *strings.Builder, z sizes, results map[string]*figures) {
	printed := false
	for _, name := range []string{"node", "parley"} {
		f := results[name]
		if f == nil || f.growth == nil {
			continue
		}
		if !printed {
			fmt.Fprintf(w, "\nGrowth, one gateway, %d replies/s to one visitor a room.\n\n", z.growth.rate)
			fmt.Fprint(w, "| | connections | memory per connection | CPU s per 1,000 | p50 | p99 |\n|---|---|---|---|---|---|\n")
			printed = true
		}
		for _, g := range f.growth {
			fmt.Fprintf(w, "| %s | %d | %s | %s | %s | %s |\n", label(name), g.connections, number(g.perConnection/1024, "KB"),
				number(g.cpuPerThousand(), ""), number(milliseconds(g.p50), "ms"), number(milliseconds(g.p99), "ms"))
		}
	}
}
