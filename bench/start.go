package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

const demoAppID = "de300000-0000-4000-8000-00000000000a"

// start measures the start of standalone on an empty directory, and again, and its memory at rest.
func (b *bench) start(ctx context.Context) {
	d := b.newDeployment()
	defer d.close()
	rest := size(b, 10*time.Second, time.Second)
	first, _ := d.startStandalone(ctx, 0)
	second, rss := d.startStandalone(ctx, rest)
	fmt.Printf("\nStandalone, until /settings answers: first start %.2f ms, second %.2f ms (below 1 s); "+
		"RSS after %s at rest %d MiB (below 60 MiB)\n", milliseconds(first), milliseconds(second), rest, rss>>20)
}

// startStandalone returns the time until /settings responds, and the memory after a rest.
func (d *deployment) startStandalone(ctx context.Context, rest time.Duration) (took time.Duration, rss int64) {
	widget := d.freeAddr()
	env := []string{
		"PARLEY_DATA_DIR=" + filepath.Join(d.dir, "data"),
		"PARLEY_NATS_ADDR=127.0.0.1:0", "PARLEY_CLIENT_ADDR=127.0.0.1:0", "PARLEY_OPS_ADDR=127.0.0.1:0",
		"PARLEY_WIDGET_ADDR=" + widget,
	}
	began := time.Now()
	p := d.start(env, "bin/standalone")
	defer p.stop()
	p.drain()
	url := "http://" + widget + "/settings/" + demoAppID
	d.await(ctx, "/settings answers", func() bool { return answers(url) })
	took = time.Since(began)
	pause(ctx, rest)
	return took, p.usage().rss
}
