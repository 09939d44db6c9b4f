package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

const demoAppID = "de300000-0000-4000-8000-00000000000a"

// measureStart measures the start of standalone on an empty directory, and again, and its memory at rest.
func measureStart(ctx context.Context, bin string, z sizes) (string, error) {
	dir, err := os.MkdirTemp("", "parley-bench-start-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	first, _, err := startStandalone(ctx, bin, dir, 0)
	if err != nil {
		return "", err
	}
	second, rss, err := startStandalone(ctx, bin, dir, z.rest)
	return fmt.Sprintf("\nStandalone, until /settings answers: first start %s, second %s (below 1 s); "+
		"RSS after %s at rest %d MiB (below 60 MiB)\n",
		rig.Milliseconds(first), rig.Milliseconds(second), z.rest, rss>>20), err
}

// startStandalone returns the time until /settings responds, and the memory after a rest.
func startStandalone(ctx context.Context, bin, dir string, rest time.Duration) (
	took time.Duration, rss int64, err error,
) {
	widget := rig.FreeAddr()
	began := time.Now()
	p, err := rig.StartAlone(filepath.Join(dir, "standalone.log"), []string{
		"PARLEY_DATA_DIR=" + filepath.Join(dir, "data"),
		"PARLEY_NATS_ADDR=127.0.0.1:0", "PARLEY_CLIENT_ADDR=127.0.0.1:0", "PARLEY_OPS_ADDR=127.0.0.1:0",
		"PARLEY_WIDGET_ADDR=" + widget,
	}, filepath.Join(bin, "standalone"))
	if err != nil {
		return 0, 0, err
	}
	defer p.Stop()
	url := "http://" + widget + "/settings/" + demoAppID
	err = rig.Await(ctx, "/settings answers", func() bool { return rig.Answers(ctx, url) })
	took = time.Since(began)
	time.Sleep(rest)
	return took, p.RSS(), err
}
