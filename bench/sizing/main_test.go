package main

import (
	"math"
	"os"
	"strings"
	"testing"
)

// The runs of docs/benchmarks.md are reproduced: 5,000 replies/s took 0.042 s of the gateways per 1,000, and so on.
func TestSizingAgreesWithMeasuredRuns(t *testing.T) {
	t.Parallel()
	c := measured()
	for _, run := range []struct {
		name      string
		load      load
		got       func(sizing) float64
		measured  float64
		tolerance float64
	}{
		{"2 gateways at 5,000 replies/s", load{replies: 5000, deliveries: 5000}, func(s sizing) float64 { return s.gateways }, 5000 * 0.042 / 1000, .01},
		{"their engines", load{replies: 5000, deliveries: 5000}, func(s sizing) float64 { return s.engines }, 5000 * 0.046 / 1000, .01},
		{"a broadcast to 5,000 at 274,616 deliveries/s", load{replies: 55, deliveries: 274_616}, func(s sizing) float64 { return s.gateways }, 274_616 * 0.004 / 1000, .05},
		{"POST /message/send at 21,882/s", load{sends: 21_882}, func(s sizing) float64 { return s.api }, 21_882 * 0.034 / 1000, .01},
		{"10,000 idle connections: 88.8 MB with the process", load{sockets: 10_000}, func(s sizing) float64 { return s.gatewayMemory / 1e6 }, 68.4, .02},
		{"1,120 answers/s of one processor", load{answers: 1120}, func(s sizing) float64 { return s.processorsWaiting }, 1, 0},
	} {
		run.load.busy, run.load.streamRate = 1, 40_000
		if got := run.got(size(c, run.load)); math.Abs(got-run.measured) > run.tolerance*run.measured {
			t.Errorf("%s: got %.3f, measured %.3f", run.name, got, run.measured)
		}
	}
}

// The table of docs/scaling.md equals the program's output.
func TestDocumentHasTheProgramsOutput(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	l := load{sockets: 1_000_000, replies: 500_000, deliveries: 500_000, busy: 0.6, streamRate: 40_000}
	if want := report(size(measured(), l)); !strings.Contains(string(text), want) {
		t.Errorf("docs/scaling.md lacks\n%s", want)
	}
}
