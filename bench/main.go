// Command bench measures the HTTP APIs relative to their theoretical bounds, as ratios within one run.
//
// NATS and the services run as separate processes (bin/, built by `make build`), the load generator in this one, all on
// the loopback address. POST /message/send is measured in alternation with its two unavoidable halves:
//
//	(a) a bare Echo handler that decodes and answers the same JSON
//	(b) bare synchronous JetStream publishes of the same event from 64 goroutines
//
// In sequence they bound it at 1/(1/a + 1/b). Turns are short and alternate, and the median of the turns counts,
// because the machine is shared. The processing layer does not run while the APIs are measured, because it would
// compete for the cores. The caller is Go's HTTP client (docs/decisions/0013-benchmark-caller.md).
//
// Read main.go for the run, load.go for the generator, bare.go for the two halves, internal/rig for the processes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// sizes are the sizes and durations of a run.
type sizes struct {
	turns    int
	turn     time.Duration
	hot      int // visitors whose histories are read again and again
	cold     int // visitors who are seen once in a while
	table    int // messages in the table of the large case
	long     int // messages in the long chat
	register int // new visitors
	replies  int // that wait for the recorder
	rest     time.Duration
}

func sizesOf(small bool) sizes {
	if small {
		return sizes{
			turns: 1, turn: 300 * time.Millisecond,
			hot: 20, cold: 100, table: 5000, long: 200, register: 20_000, replies: 2000,
			rest: time.Second,
		}
	}
	return sizes{
		turns: 5, turn: 4 * time.Second,
		hot: 100, cold: 20_000, table: 1_000_000, long: 10_000, register: 60_000, replies: 200_000,
		rest: 10 * time.Second,
	}
}

// part is one thing to measure; it returns a table.
type part struct {
	name    string
	measure func(ctx context.Context, r *rig.Rig, z sizes) (string, error)
}

func parts() []part {
	return []part{
		{"send", measureSend},
		{"widget", measureWidget},
		{"recorder", measureRecorder},
	}
}

func main() {
	bin := flag.String("bin", "bin", "directory of the binaries built by `make build`")
	small := flag.Bool("small", false, "small sizes: checks that the benchmark works, without meaningful figures")
	only := flag.String("only", "send,widget,recorder,start", "what to measure")
	echo := flag.Bool("echo", false, "set by the benchmark for its own child: serve half (a)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *echo {
		err = bareEcho()
	} else {
		err = run(ctx, *bin, strings.Split(*only, ","), sizesOf(*small))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, only []string, z sizes) error {
	for _, p := range parts() {
		if !slices.Contains(only, p.name) {
			continue
		}
		table, err := measureOn(ctx, bin, p, z)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Print(table)
	}
	if !slices.Contains(only, "start") {
		return nil
	}
	line, err := measureStart(ctx, bin, z)
	fmt.Print(line)
	return err
}

// measureOn measures a part on servers of its own.
func measureOn(ctx context.Context, bin string, p part, z sizes) (string, error) {
	r, err := rig.Open(bin)
	if err != nil {
		return "", err
	}
	defer r.Close()
	return p.measure(ctx, r, z)
}
