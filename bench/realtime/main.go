// Command realtime compares the Socket gateway with a gateway written with the official Node packages (../peer), as
// ratios within one run.
//
// The servers and the gateways are separate processes, new for every measurement; the load generator is this process.
// Both contenders get the same load, one after the other:
//
//	handshake  websocket, visitor token, CONNECT and join of many connections; memory per idle connection
//	paced      one visitor a room, two gateways, from JetStream to the client: cost, latency, highest rate, overload
//	broadcast  many connections in one room
//	readers    what one, two and three gateways use for the same load
//
// Every reply carries a mark: trial, room, sequence in its room, and the time for which its publication was planned
// (not the actual time, so that a slow generator cannot improve the latency). From the marks each delivery
// is classified as in order, out of order, doubled or misdirected; missing ones are lost.
//
// Reading order: measure.go (the rows), deployment.go (the processes), trial.go (a load and its tally), client.go (a
// visitor's connection), report.go (the table).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	rows := flag.String("rows", "handshake,paced,broadcast,readers", "which measurements to make")
	contenders := flag.String("contenders", "node,parley", "which gateways to measure")
	bin := flag.String("bin", "bin", "directory of the binaries built by `make build`")
	timeout := flag.Duration("timeout", 15*time.Minute, "timeout of the run; the results so far are printed")
	small := flag.Bool("small", false, "small sizes: checks that the benchmark works, without meaningful figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	b := &bench{sizes: sizesOf(*small), bin: *bin, report: newReport()}
	err := b.run(ctx, strings.Split(*rows, ","), strings.Split(*contenders, ","))
	fmt.Print(b.report) // the results so far
	if err != nil {
		fmt.Fprintln(os.Stderr, "realtime:", err)
		os.Exit(1)
	}
}

// sizes are the sizes and durations of a run.
type sizes struct {
	idle    int           // connections that connect and stay idle
	settle  time.Duration // wait before their memory is read
	rooms   int           // visitors of the paced loads, one a room
	warm    time.Duration // a paced load for warm-up
	latency pace
	cost    pace
	over    pace
	ceiling pace          // the first rate to try, and the duration of each try
	bound   time.Duration // of p99 in the search for the highest rate
	clients int           // connections in the one room of a broadcast
	events  int           // per broadcast
	bursts  int           // broadcasts, whose median counts
}

// pace is the rate and duration of a load.
type pace struct {
	rate int // per second
	time time.Duration
}

func (p pace) total() int { return int(float64(p.rate) * p.time.Seconds()) }

func sizesOf(small bool) sizes {
	if small {
		return sizes{
			idle: 300, settle: 200 * time.Millisecond,
			rooms: 100, warm: 200 * time.Millisecond,
			latency: pace{200, time.Second},
			cost:    pace{500, time.Second},
			over:    pace{1000, time.Second},
			ceiling: pace{500, 500 * time.Millisecond}, bound: 250 * time.Millisecond,
			clients: 200, events: 10, bursts: 1,
		}
	}
	return sizes{
		idle: 10_000, settle: 5 * time.Second,
		rooms: 1000, warm: time.Second,
		latency: pace{2000, 6 * time.Second},
		cost:    pace{5000, 6 * time.Second},
		over:    pace{10_000, 8 * time.Second},
		ceiling: pace{2000, 3 * time.Second}, bound: 250 * time.Millisecond,
		clients: 5000, events: 40, bursts: 3,
	}
}

// bench is one run.
type bench struct {
	sizes
	bin    string
	report *report
}

// contender is a gateway under test.
type contender struct {
	name string
	args []string // program and arguments; none: our own service
}

func (b *bench) run(ctx context.Context, rows, contenders []string) error {
	known := []contender{{name: "node", args: []string{"node", "bench/peer/gateway.mjs"}}, {name: "parley"}}
	for _, row := range []struct {
		name    string
		measure func(context.Context, contender) error
	}{
		{"handshake", b.handshakes}, {"paced", b.paced}, {"broadcast", b.broadcast}, {"readers", b.readers},
	} {
		for _, c := range known {
			if !slices.Contains(rows, row.name) || !slices.Contains(contenders, c.name) {
				continue
			}
			began := time.Now()
			if err := row.measure(ctx, c); err != nil {
				return fmt.Errorf("%s of %s: %w", row.name, c.name, err)
			}
			fmt.Fprintf(os.Stderr, "%-10s %-8s %5.1f s\n", row.name, c.name, time.Since(began).Seconds())
		}
	}
	return nil
}
