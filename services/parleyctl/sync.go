package parleyctl

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/streamsync"
)

// syncUser is the NATS user that answers requests for syncs. It may not subscribe to the operator's inboxes.
const syncUser = "syncer"

// syncWait is how long the command waits for a server that starts at the same time.
const syncWait = time.Minute

// streamsSync runs beside a nats-server whose streams have one replica (STREAM_SYNC=shared).
func (a *app) streamsSync() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "sync", Short: "Put accepted events on the disk, beside a single NATS server; runs until stopped",
		Long: `Put accepted events on the disk, beside a single NATS server; runs until stopped.

A service that publishes an event asks for a sync after the acknowledgement of NATS, and answers its caller when that is done; all that wait share
one sync of the stream's file. This process needs the disk of the server, which it only reads, and the NATS user syncer. While it does not run,
the services answer 503. Three servers sync by themselves (STREAM_SYNC=server), and embedded NATS needs none.`,
		Example: `  parleyctl streams sync --store-dir /var/lib/nats`, Args: exactArgs(),
	}
	require(c, "store-dir")
	c.Flags().StringVar(&dir, "store-dir", "", "store_dir of the NATS server")
	checkFirst(c, func() error {
		if _, err := os.Stat(dir); err != nil {
			return usage("--store-dir: " + err.Error())
		}
		return nil
	})
	c.RunE = func(c *cobra.Command, _ []string) error { return a.syncStreams(c.Context(), dir) }
	return c
}

func (a *app) syncStreams(ctx context.Context, dir string) error {
	_, err := a.openBusAs(ctx, syncUser)
	err = await(ctx, syncWait, err, func(ctx context.Context) error { return a.connections.bus.Ready(ctx) })
	if err != nil {
		return err
	}
	b := a.connections.bus
	syncer := streamsync.New(dir)
	defer syncer.Close()
	stop, err := b.RPC().HandleSyncs(syncer.Sync)
	if err != nil {
		return err
	}
	defer stop()
	if _, err := fmt.Fprintf(a.Out, "syncing the streams in %s\n", dir); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		syncer.Run(ctx, func(err error) { _, _ = fmt.Fprintf(a.Err, "%s: %v\n", name, err) })
	})
	defer sweeping.Wait()
	defer cancel()
	select {
	case <-ctx.Done():
		return nil
	case <-b.Lost().Done():
		return context.Cause(b.Lost())
	}
}
