package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.rows, "rows", strings.Join(rowNames(), ","), "which measurements to make")
	flag.StringVar(&o.contenders, "contenders", "node,node-sharded,parley", "which gateways to measure")
	flag.StringVar(&o.bin, "bin", "bin", "directory of the binaries built by `make build`")
	flag.StringVar(&o.peer, "peer", "bench/peer/gateway.mjs", "the Node gateway")
	flag.StringVar(&o.profiles, "profiles", "", "directory for profiles of Parley's gateways; profiling distorts the figures")
	flag.DurationVar(&o.timeout, "timeout", 15*time.Minute, "timeout of the run; the results so far are printed")
	flag.BoolVar(&o.quick, "quick", false, "small sizes: checks that the benchmark works, without meaningful figures")
	role := flag.String("role", "", "set by the benchmark for its own children")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var err error
	if *role == "bare" {
		err = serveBare()
	} else {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "realtime:", err)
		os.Exit(1)
	}
}

type options struct {
	rows, contenders, bin, peer string
	profiles                    string
	timeout                     time.Duration
	quick                       bool
}

// bench is one run.
type bench struct {
	sizes
	dir        string
	profiles   string
	natsServer string
	visitors   *visitors
	stages     int
}

// row is one measurement; it writes its results to the figures of a contender.
type row struct {
	name    string
	sharded bool // whether the sharded adapter is measured too
	measure func(context.Context, *bench, contender, *figures) error
}

// rows returns all measurements in order.
func rows() []row {
	return []row{
		{"handshake", false, measureHandshakes},
		{"paced", true, measurePaced},
		{"broadcast", false, measureBroadcast},
		{"redis", true, measureRedis},
		{"growth", false, measureGrowth},
		{"readers", false, measureReaders},
		{"parts", false, measureParts},
	}
}

func rowNames() (names []string) {
	for _, r := range rows() {
		names = append(names, r.name)
	}
	return names
}

func (o options) contendersToMeasure() (chosen []contender, err error) {
	node := []string{"node", o.peer}
	known := map[string]contender{
		"node":         {name: "node", args: node},
		"node-sharded": {name: "node-sharded", args: node, env: []string{"REDIS_SHARDED=true"}},
		// All sockets of a stage belong to one visitor, whose limit is 20 by default, and use one address.
		"parley": {name: "parley", args: []string{filepath.Join(o.bin, "socket-gateway")}, env: []string{"LIMITS=none"}, profiled: true},
	}
	for name := range strings.SplitSeq(o.contenders, ",") {
		c, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("unknown contender %q", name)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

func (o options) rowsToMeasure() (chosen []row, err error) {
	names := strings.Split(o.rows, ",")
	for _, name := range names {
		if !slices.Contains(rowNames(), name) {
			return nil, fmt.Errorf("unknown row %q; valid rows are %s", name, strings.Join(rowNames(), ", "))
		}
	}
	for _, r := range rows() {
		if slices.Contains(names, r.name) {
			chosen = append(chosen, r)
		}
	}
	return chosen, nil
}

func run(ctx context.Context, o options) (err error) {
	contenders, err := o.contendersToMeasure()
	if err != nil {
		return err
	}
	chosen, err := o.rowsToMeasure()
	if err != nil {
		return err
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	results := map[string]*figures{"bare": {}}
	for _, c := range contenders {
		results[c.name] = &figures{}
	}
	for _, r := range chosen {
		if err := b.measure(ctx, r, contenders, results); err != nil {
			// Print the results so far.
			fmt.Print(report(b.sizes, results))
			return err
		}
	}
	fmt.Print(report(b.sizes, results))
	return nil
}

// measure runs a row for each contender.
func (b *bench) measure(ctx context.Context, r row, contenders []contender, results map[string]*figures) error {
	if r.name == "broadcast" {
		if err := measureBare(ctx, b, results["bare"]); err != nil {
			return fmt.Errorf("broadcast of the bare loop: %w", err)
		}
	}
	for _, c := range contenders {
		if c.name == "node-sharded" && !r.sharded {
			continue
		}
		began := time.Now()
		if err := r.measure(ctx, b, c, results[c.name]); err != nil {
			return fmt.Errorf("%s of %s: %w", r.name, c.name, err)
		}
		fmt.Fprintf(os.Stderr, "%-10s %-13s %5.1f s\n", r.name, c.name, time.Since(began).Seconds())
	}
	return nil
}

func newBench(ctx context.Context, o options) (b *bench, err error) {
	b = &bench{sizes: fullSizes(), profiles: o.profiles}
	if o.quick {
		b.sizes = quickSizes()
	}
	if b.dir, err = os.MkdirTemp("", "parley-realtime-"); err != nil {
		return nil, err
	}
	if b.natsServer, err = buildNATS(ctx, b.dir); err == nil {
		b.visitors, err = newVisitors(b.most())
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	return b, nil
}

func (b *bench) close() {
	b.visitors.close()
	_ = os.RemoveAll(b.dir)
}
