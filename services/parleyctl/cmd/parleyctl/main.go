// Command parleyctl is the operator's command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/parley-chat/parley/services/parleyctl"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return parleyctl.Run(ctx, os.Args[1:], parleyctl.Terminal{
		In:          os.Stdin,
		Out:         os.Stdout,
		Err:         os.Stderr,
		Interactive: isatty.IsTerminal(os.Stdin.Fd()),
		Getenv:      os.Getenv,
		Now:         time.Now,
	})
}
