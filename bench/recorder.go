package main

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-chat/parley/proto-events/subject"
)

// recorderChats is the number of chats whose replies the recorder stores.
const recorderChats = 1000

// recorder publishes replies while no processor runs, starts one that only records, and measures the time from the
// first message in the history to the last.
func (b *bench) recorder(ctx context.Context, d *deployment) {
	total := size(b, 200_000, 2000)
	d.visitors = d.register(ctx, recorderChats)
	d.publish(ctx, d.newTrial(), pace{0, total})
	processor := d.serve(ctx, []string{"BOT=external", "DISPATCHER=false"}, "bin/processor")
	stored := func() int {
		recorder, err := d.bus.Group(ctx, subject.Replies, "recorder")
		if err != nil || len(recorder.Missing()) > 0 {
			return 0 // the consumer is not there yet
		}
		left := recorder.Total()
		return total - int(left.Pending) - left.AckPending
	}
	d.await(ctx, "a reply is stored", func() bool { return stored() > 0 })
	have := stored()
	began := time.Now()
	cpu := processor.usage().cpu
	engines := d.engines.usage().cpu
	d.await(ctx, "all replies are stored", func() bool { return stored() >= total })
	n := total - have
	rate := float64(n) / time.Since(began).Seconds()
	after := processor.usage()
	fmt.Printf("\nRecorder, %d replies into %d chats: %.0f events/s (at least 20,000/s), "+
		"%.3f CPU s per 1,000, engines %.3f, peak RSS %d MiB\n",
		total, recorderChats, rate,
		perThousand(after.cpu-cpu, n), perThousand(d.engines.usage().cpu-engines, n), after.peakRSS>>20)
}
