package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/parley-chat/parley/pkg/bus"
)

// cluster compares POST /message/send on three NATS servers with three replicas that sync before they acknowledge
// (sync_interval: always) with the same on servers that sync by themselves, in alternation, for several numbers of
// callers. TMPDIR selects the disk, which the servers share.
func (b *bench) cluster(ctx context.Context) {
	lazy, closeLazy := b.onCluster(ctx, bus.SyncNone)
	defer closeLazy()
	always, closeAlways := b.onCluster(ctx, bus.SyncServer)
	defer closeAlways()
	t := newLoadTable(fmt.Sprintf("POST /message/send, three NATS servers that sync lazily and always; "+
		"median of %d turns", size(b, 5, 1)))
	for _, callers := range []int{1, 8, 64, 256} {
		b.alternate(ctx, t, callers, lazy, always)
	}
	fmt.Print(t)
}

// onCluster returns the load of sends on three NATS servers.
func (b *bench) onCluster(ctx context.Context, sync bus.Sync) (sends powerLoad, closeAll func()) {
	d := &syncDeployment{b.newDeployment(), "sync " + string(sync)}
	ready := false
	defer func() {
		if !ready { // a check has ended the part
			d.close()
		}
	}()
	d.open(ctx)
	d.startCluster(ctx, sync)
	d.visitors = d.register(ctx, sendChats)
	sends = d.send(ctx)
	ready = true
	return sends, d.close
}

// startCluster starts three NATS servers with Parley's streams, for the services that start later.
func (d *deployment) startCluster(ctx context.Context, sync bus.Sync) {
	program := d.build(ctx, "github.com/nats-io/nats-server/v2", "nats-server")
	var routes, urls []string
	for range 3 {
		routes = append(routes, d.freeAddr())
		urls = append(urls, d.freeAddr())
	}
	interval := ""
	if sync == bus.SyncServer {
		interval = ", sync_interval: always"
	}
	for n := range routes {
		config := fmt.Sprintf("server_name: nats-%d\nlisten: %q\nmax_payload: 2MB\n"+
			"jetstream: {store_dir: %q, max_file_store: 1TB%s}\n"+
			"cluster: {name: parley, listen: %q, routes: [nats://%s]}\n",
			n, urls[n], filepath.Join(d.dir, fmt.Sprint("nats-", n)), interval,
			routes[n], strings.Join(routes, ", nats://"))
		file := filepath.Join(d.dir, fmt.Sprintf("nats-%d.conf", n))
		d.check(os.WriteFile(file, []byte(config), 0o600))
		d.servers = append(d.servers, d.start(nil, program, "-c", file))
	}
	url := "nats://" + strings.Join(urls, ",nats://")
	d.applyStreams(ctx, url, bus.StreamSettings{Replicas: 3, Sync: sync, MaxBytes: 16 << 30})
	d.env = append(d.env, "NATS_URL="+url) // the last value counts
}

func (d *deployment) applyStreams(ctx context.Context, url string, settings bus.StreamSettings) {
	b, err := bus.Open(bus.Config{URL: url, Name: "bench", Observe: true, Logger: slog.New(slog.DiscardHandler)})
	d.check(err)
	defer b.Close()
	_, err = b.ApplyStreams(ctx, settings)
	d.check(err)
}

// build builds a program of the tests, and returns its path.
func (d *deployment) build(ctx context.Context, pkg, name string) string {
	path := filepath.Join(d.dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-o", path, pkg)
	if out, err := build.CombinedOutput(); err != nil {
		d.check(fmt.Errorf("building %s: %w\n%s", name, err, out))
	}
	return path
}
