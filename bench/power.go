package main

import (
	"context"
	"fmt"
	"strings"
)

// power compares what events on the disk before the answer cost (STREAM_SYNC=shared) with the same while nats-server
// syncs by itself (none), in alternation: POST /message/send and POST /message for several numbers of callers, and the
// recorder. The Fastify peer sends beside the first, on a server that syncs by itself. TMPDIR selects the disk.
func (b *bench) power(ctx context.Context) {
	lazy := b.syncing(ctx, "none")
	defer lazy.close()
	synced := b.syncing(ctx, "shared")
	defer synced.close()
	lazySend := lazy.send(ctx)
	syncedSend := synced.send(ctx)
	lazyMessage := lazy.message(ctx)
	syncedMessage := synced.message(ctx)
	peer := lazy.fastify(ctx)
	t := newLoadTable(fmt.Sprintf("Events on the disk before the answer (shared) and not (none), %d chats; "+
		"median of %d turns", sendChats, size(b, 5, 1)))
	for _, callers := range []int{1, 8, 64, 256} {
		b.alternate(ctx, t, callers, lazySend, syncedSend)
	}
	b.alternate(ctx, t, connections, peer, syncedSend)
	for _, callers := range []int{1, 8, 64, 256} {
		b.alternate(ctx, t, callers, lazyMessage, syncedMessage)
	}
	fmt.Print(t)
	for range size(b, 2, 1) {
		b.recorders(ctx)
	}
}

// powerLoad is a load on a deployment of its own.
type powerLoad struct {
	*deployment
	load
}

// alternate measures loads in turns, after one warm-up turn of each, and adds their medians, and the ratios of
// their rates to the first one's.
func (b *bench) alternate(ctx context.Context, t *table, callers int, loads ...powerLoad) {
	turns := make([][]turn, len(loads))
	for n := range size(b, 5, 1) + 1 {
		for i, c := range loads {
			l := c.load
			l.callers = callers
			measured := c.measure(ctx, l)
			if n > 0 {
				turns[i] = append(turns[i], measured)
			}
		}
	}
	for i, c := range loads {
		ratios := make([]float64, len(turns[i]))
		for k, measured := range turns[i] {
			ratios[k] = measured.rate() / turns[0][k].rate()
		}
		t.addTurns(fmt.Sprintf("%s, %d callers (%.2f of the first)", c.name, callers, median(ratios)), turns[i]...)
	}
}

// recorders measures the recorder with both settings, each on servers of its own.
func (b *bench) recorders(ctx context.Context) {
	for _, sync := range []string{"none", "shared"} {
		d := b.syncing(ctx, sync)
		fmt.Printf("\n%s:", sync)
		b.recorder(ctx, d.deployment)
		d.close()
	}
}

// syncDeployment is a deployment with a STREAM_SYNC, whose APIs are under load.
type syncDeployment struct {
	*deployment
	sync string
}

func (b *bench) syncing(ctx context.Context, sync string) *syncDeployment {
	d := b.newDeployment()
	d.engineEnv = []string{"STREAM_SYNC=" + sync}
	d.open(ctx)
	d.visitors = d.register(ctx, sendChats)
	return &syncDeployment{d, sync}
}

func (d *syncDeployment) send(ctx context.Context) powerLoad {
	service := d.serve(ctx, nil, "bin/client-api")
	return powerLoad{d.deployment, d.httpLoad("POST /message/send, "+d.sync, service, 200, d.sendRequests())}
}

func (d *syncDeployment) message(ctx context.Context) powerLoad {
	service := d.serve(ctx, nil, "bin/widget-api")
	message := request{method: "POST", path: "/message", body: `{"type":"TEXT","data":` + messageData + `}`}
	return powerLoad{d.deployment, d.httpLoad("POST /message, "+d.sync, service, 201, toEach(d.visitors, message))}
}

// fastify is POST /message/send of the peer.
func (d *syncDeployment) fastify(ctx context.Context) powerLoad {
	chats := make([]string, len(d.visitors))
	for i, v := range d.visitors {
		chats[i] = v.chatID
	}
	env := []string{
		"TOKEN=" + d.demo.AccessToken, "COMPANY_ID=" + d.demo.CompanyID, "CHATS=" + strings.Join(chats, ","),
	}
	peer := d.serve(ctx, env, "node", "bench/peer/send.mjs")
	return powerLoad{d.deployment, d.httpLoad("Fastify, "+d.sync, peer, 200, d.sendRequests())}
}
