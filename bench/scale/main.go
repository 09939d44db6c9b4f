package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	bin := flag.String("bin", "bin", "directory of the binaries built by `make build`")
	quick := flag.Bool("quick", false, "small sizes: checks that the benchmark works, without meaningful figures")
	timeout := flag.Duration("timeout", 12*time.Minute, "timeout of the run; the results so far are printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := run(ctx, *bin, sizesOf(*quick)); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, z sizes) error {
	w, err := openWorld(ctx, bin)
	defer w.close()
	if err != nil {
		return err
	}
	m := &measurements{sizes: z, world: w}
	err = m.all(ctx)
	fmt.Print(m.report()) // print the results so far
	return err
}

// sizes are the sizes and durations of a run.
type sizes struct {
	visitors int           // of the load on one processor
	capped   int           // BOT_CONCURRENCY when comparing processors
	faulty   int           // visitors while processors start and stop
	warm     time.Duration // warm-up
	span     time.Duration // of a measured load
	settle   time.Duration // after a change of the number of replicas
	hang     time.Duration
}

func sizesOf(quick bool) sizes {
	if quick {
		return sizes{visitors: 200, capped: 20, faulty: 40, warm: 2 * time.Second, span: 3 * time.Second, settle: 4 * time.Second, hang: 5 * time.Second}
	}
	return sizes{
		visitors: 5000, capped: 200, faulty: 400, warm: 8 * time.Second, span: 15 * time.Second, settle: 10 * time.Second, hang: 60 * time.Second,
	}
}
