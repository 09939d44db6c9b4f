package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/pkg/streamsync"
)

// serveSyncs syncs the streams of a server in dir for their publishers, until stop is called. stop must be called
// before the server ends.
func serveSyncs(s *server.Server, dir string, log *slog.Logger) (stop func(), err error) {
	conn, err := nats.Connect("", nats.InProcessServer(s), nats.Name("streamsync"), nats.NoReconnect())
	if err != nil {
		return nil, fmt.Errorf("connecting the sync of the streams: %w", err)
	}
	syncer := streamsync.New(dir)
	unsubscribe, err := rpc.New(conn).HandleSyncs(syncer.Sync)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("subscribing the sync of the streams: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		syncer.Run(ctx, func(err error) { log.Error("syncing the declarations of NATS failed, trying again", "error", err) })
	})
	return func() {
		cancel()
		sweeping.Wait()
		unsubscribe()
		conn.Close()
		syncer.Close()
	}, nil
}
