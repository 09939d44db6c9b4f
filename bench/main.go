// Command bench makes the tables of docs/benchmarks.md: the HTTP APIs relative to their theoretical bounds, the
// recorder, the start of standalone, the Socket gateway beside one written with the official Node packages (peer/), and
// the effect of replicas. It runs in the root of the repository.
//
// NATS, Redis, the services and the peer run as separate processes (bin/, built by `make build`), new for every
// measurement; the load generator is this process, and all speak over the loopback address. The machine is shared, so
// that only ratios within one run mean something: what is compared is measured alternately or one after the other, in
// the same way, and the median of the turns counts. An error ends the run: figures with failures are not reported.
//
// Reading order: main.go (the parts), deployment.go and process.go (the processes), then the parts. The APIs are in
// send.go, widget.go, recorder.go and start.go, under the closed loop of generator.go. The gateways are in realtime.go,
// and the processors in scale.go; trial.go counts what their visitors receive.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// bench is one run. Its parts are measured one after the other, each in a goroutine of its own.
type bench struct {
	small      bool
	contenders []string
	comparison comparison // of the gateways
	err        error      // that ended the part
}

func main() {
	b := &bench{}
	flag.BoolVar(&b.small, "small", false, "small sizes: checks that the benchmark works, without meaningful figures")
	only := flag.String("only", "send,widget,recorder,start", "what to measure, in this order; there are also power, "+
		"cluster, restart, restart-cut, handshake, paced, broadcast and readers of gateways, and scale")
	contenders := flag.String("contenders", "node,parley", "which gateways to measure")
	timeout := flag.Duration("timeout", 40*time.Minute, "timeout of the run; the results so far are printed")
	flag.Parse()
	b.contenders = strings.Split(*contenders, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	err := b.run(ctx, strings.Split(*only, ","))
	fmt.Print(&b.comparison) // the results so far
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, only []string) error {
	parts := map[string]func(context.Context){
		"send":        b.deployed(b.send),
		"power":       b.power,
		"cluster":     b.cluster,
		"restart":     b.restart,
		"restart-cut": b.restartCut,
		"widget":      b.deployed(b.widget),
		"recorder":    b.deployed(b.recorder),
		"start":       b.start,
		"handshake":   b.compare(b.handshakes, 1),
		"paced":       b.compare(b.paced, 2),
		"broadcast":   b.compare(b.broadcast, 1),
		"readers":     b.compare(b.readers, 1, 2, 3),
		"scale":       b.deployed(b.scale),
		"echo":        b.serveEcho, // half (a) of send, which starts it as a process of its own
	}
	for _, name := range only {
		part := parts[name]
		if part == nil {
			return fmt.Errorf("there is no %q to measure", name)
		}
		began := time.Now()
		var running sync.WaitGroup
		running.Go(func() { part(ctx) })
		running.Wait()
		if b.err != nil {
			return fmt.Errorf("%s: %w", name, b.err)
		}
		fmt.Fprintf(os.Stderr, "%-10s %5.1f s\n", name, time.Since(began).Seconds())
	}
	return nil
}

// check ends the part, and with it the run, if there is an error, as Fatal of a test does: the part's goroutine ends
// after its deferred functions. Other goroutines return their errors to it.
func (b *bench) check(err error) {
	if err != nil {
		b.err = err
		runtime.Goexit()
	}
}

// deployed gives a measurement servers of its own.
func (b *bench) deployed(measure func(context.Context, *deployment)) func(context.Context) {
	return func(ctx context.Context) {
		d := b.newDeployment()
		defer d.close()
		d.open(ctx)
		measure(ctx, d)
	}
}

// size returns the size or duration of a full run, or the one of -small.
func size[T any](b *bench, full, small T) T {
	if b.small {
		return small
	}
	return full
}
