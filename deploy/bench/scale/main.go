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
	bin := flag.String("bin", "bin", "the folder with the binaries that `make build` made")
	quick := flag.Bool("quick", false, "small sizes: shows that the benchmark works, not how fast anything is")
	timeout := flag.Duration("timeout", 12*time.Minute, "when to give up; what was measured until then is printed")
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
	fmt.Print(m.report()) // what was measured before is not lost
	return err
}

// sizes are how much of everything a run takes.
type sizes struct {
	visitors int           // of the load on one processor
	capped   int           // BOT_CONCURRENCY of the row that compares processors
	faulty   int           // visitors while processors come and go
	warm     time.Duration // before anything counts
	span     time.Duration // of a load that counts
	settle   time.Duration // after a change of the replicas
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
