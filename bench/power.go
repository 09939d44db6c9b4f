package main

import (
	"context"
	"fmt"
)

// power compares POST /message/send with events that are on the disk before the answer (STREAM_SYNC=shared) with the
// same while nats-server syncs by itself (none), in alternation, for several numbers of callers. TMPDIR selects the
// disk.
func (b *bench) power(ctx context.Context) {
	lazy := b.sender(ctx, "none")
	defer lazy.close()
	synced := b.sender(ctx, "shared")
	defer synced.close()
	count := size(b, 5, 1)
	t := newLoadTable(fmt.Sprintf("POST /message/send, nats-server that syncs lazily and with shared syncs; "+
		"median of %d turns", count))
	for _, callers := range []int{1, 8, 64, 256} {
		var turns [2][]turn
		for n := range count + 1 {
			for i, s := range []*sender{lazy, synced} {
				l := s.load
				l.callers = callers
				measured := s.measure(ctx, l)
				if n > 0 {
					turns[i] = append(turns[i], measured)
				}
			}
		}
		t.addTurns(fmt.Sprintf("lazy, %d callers", callers), turns[0]...)
		t.addTurns(fmt.Sprintf("shared, %d callers", callers), turns[1]...)
		var ratios []float64
		for i := range count {
			ratios = append(ratios, turns[1][i].rate()/turns[0][i].rate())
		}
		t.row(fmt.Sprintf("ratio, %d callers", callers), fmt.Sprintf("%.2f", median(ratios)))
	}
	fmt.Print(t)
}

// sender is a deployment under the load of POST /message/send.
type sender struct {
	*deployment
	load load
}

// sender returns a deployment with a STREAM_SYNC.
func (b *bench) sender(ctx context.Context, sync string) *sender {
	d := b.newDeployment()
	d.engineEnv = []string{"STREAM_SYNC=" + sync}
	d.open(ctx)
	service := d.serve(ctx, nil, "bin/client-api")
	d.visitors = d.register(ctx, sendChats)
	return &sender{d, d.httpLoad(sync, service, 200, d.sendRequests())}
}
