package parleyctl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
)

// maxMonitorAnswer bounds the answer of a server's monitoring port.
const maxMonitorAnswer = 1 << 20

// durability names what an accepted event survives, and checks that something keeps the promise.
func (e *examiner) durability(ctx context.Context, b *bus.Bus, streams []*jetstream.StreamInfo) {
	const check = "durability"
	var promises, unsynced []string
	var mode bus.Sync
	for _, info := range streams {
		stated, ok := bus.SyncOf(info.Config.Metadata)
		if !ok {
			continue // PARTS and POSITIONS
		}
		mode = stated
		if promise := mode.Promise(info.Config.Replicas); !slices.Contains(promises, promise) {
			promises = append(promises, promise)
		}
		ctx, cancel := context.WithTimeout(ctx, engineTime)
		err := b.Sync(ctx, info.Config.Name)
		cancel()
		if err != nil {
			unsynced = append(unsynced, fmt.Sprintf("%s: %s", info.Config.Name, describe(err)))
		}
	}
	promise := "accepted events are " + strings.Join(promises, "; ")
	switch {
	case len(promises) == 0:
		e.wrong(check, "parleyctl streams apply", "the streams do not say what syncs them")
	case len(unsynced) > 0:
		e.wrong(check, "start parleyctl streams sync beside NATS", "%s", strings.Join(unsynced, "; "))
	case mode == bus.SyncNone:
		e.warn(check, "STREAM_SYNC=auto, then parleyctl streams apply: docs/consistency.md", "%s", promise)
	case mode == bus.SyncServer:
		e.syncedByServers(ctx, check, promise)
	default:
		e.ok(check, "%s", promise)
	}
}

// syncedByServers checks that the servers sync by themselves, as their monitoring ports say.
func (e *examiner) syncedByServers(ctx context.Context, check, promise string) {
	if len(e.monitors) == 0 {
		e.warn(check, "pass --monitor http://HOST:8222 of each NATS server",
			"%s, if sync_interval is always on each server, which was not checked", promise)
		return
	}
	servers := 0 // in the cluster
	for _, url := range e.monitors {
		settings, err := settingsOf(ctx, url)
		if err != nil {
			e.wrong(check, "correct --monitor", "%v", err)
			return
		}
		if !settings.Config.SyncAlways {
			const set = "set jetstream { sync_interval: always } there"
			e.wrong(check, set, "the server at %s does not sync what it acknowledges", url)
			return
		}
		servers = max(servers, settings.MetaCluster.Size)
	}
	if len(e.monitors) < servers {
		e.warn(check, "pass --monitor http://HOST:8222 of each NATS server",
			"%s, if sync_interval is always on each server; %d of %d were checked", promise, len(e.monitors), servers)
		return
	}
	e.ok(check, "%s", promise)
}

// jetStreamSettings is what the monitoring port of a NATS server says of JetStream.
type jetStreamSettings struct {
	Config struct {
		SyncAlways bool `json:"sync_always"`
	} `json:"config"`
	MetaCluster struct {
		Size int `json:"cluster_size"`
	} `json:"meta_cluster"`
}

// settingsOf asks the monitoring port of a NATS server (its endpoint /jsz).
func settingsOf(ctx context.Context, url string) (settings jetStreamSettings, err error) {
	ctx, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/jsz", nil)
	if err != nil {
		return settings, fmt.Errorf("asking NATS for its settings: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return settings, fmt.Errorf("asking NATS for its settings: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxMonitorAnswer)).Decode(&settings); err != nil {
		return settings, fmt.Errorf("%s/jsz is not the answer of NATS: %w", url, err)
	}
	return settings, nil
}
