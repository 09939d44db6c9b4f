package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
)

func main() {
	os.Exit(ops.Main("standalone", run, "engines"))
}

// run executes the command line. Its log is for a terminal, so it is not JSON like the services' logs.
func run(ctx context.Context, _ *slog.Logger) error {
	cfg, err := config.Load[Config]()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	switch args := os.Args[1:]; {
	case len(args) == 0:
		return serve(ctx, cfg, log, os.Stdout)
	case len(args) == 1 && args[0] == "engines":
		return serveEngines(ctx, cfg, log, os.Stdout)
	}
	return fmt.Errorf(
		"unknown arguments %q: use no argument for everything, or engines for the engines alone",
		os.Args[1:],
	)
}
