package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

const (
	demoAppID = "de300000-0000-4000-8000-00000000000a"
	restTime  = 10 * time.Second // after which the idle memory is read
)

// startFigure is the start time of standalone on an empty directory, and again, and its idle memory.
type startFigure struct {
	first, second time.Duration
	rss           int64
}

func measureStart(ctx context.Context, bin string) (f startFigure, err error) {
	dir, err := os.MkdirTemp("", "parley-bench-start-")
	if err != nil {
		return f, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if f.first, _, err = startStandalone(ctx, bin, dir, 0); err != nil {
		return f, err
	}
	f.second, f.rss, err = startStandalone(ctx, bin, dir, restTime)
	return f, err
}

// startStandalone returns the time until /settings responds, and the idle memory.
func startStandalone(ctx context.Context, bin, dir string, rest time.Duration) (took time.Duration, rss int64, err error) {
	widget := rig.FreeAddr()
	began := time.Now()
	p, err := rig.Start([]string{
		"PARLEY_DATA_DIR=" + filepath.Join(dir, "data"), "PARLEY_NATS_ADDR=127.0.0.1:0", "PARLEY_CLIENT_ADDR=127.0.0.1:0",
		"PARLEY_WIDGET_ADDR=" + widget, "PARLEY_OPS_ADDR=127.0.0.1:0",
	}, filepath.Join(dir, "standalone.log"), filepath.Join(bin, "standalone"))
	if err != nil {
		return 0, 0, err
	}
	defer p.Stop()
	p.Drain()
	for ctx.Err() == nil {
		resp, err := http.Get("http://" + widget + "/settings/" + demoAppID)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	took = time.Since(began)
	time.Sleep(rest)
	return took, p.RSS(), ctx.Err()
}

func (f startFigure) line() string {
	return fmt.Sprintf("\nStandalone, until /settings answers: first start %.0f ms, second %.0f ms (below 1 s); RSS after %s at rest %.0f MiB (below 60 MiB)\n",
		f.first.Seconds()*1000, f.second.Seconds()*1000, restTime, float64(f.rss)/(1<<20))
}
