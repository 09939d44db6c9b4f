package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/bus"
)

const (
	streamBytes = 16 << 30 // a full stream would reject events
	secret      = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// world is the running environment: the servers, the webhook, and the current processors.
type world struct {
	bin, dir   string
	engines    *rig.Process
	env        []string
	appID      string
	bus        *bus.Bus
	webhook    *webhook
	processors []*processor
	started    int
}

// processor is one replica.
type processor struct {
	*rig.Process
	ops string
}

func openWorld(ctx context.Context, bin string) (w *world, err error) {
	w = &world{bin: bin}
	if w.dir, err = os.MkdirTemp("", "parley-scale-"); err != nil {
		return w, err
	}
	if w.webhook, err = startWebhook(); err != nil {
		return w, err
	}
	limit := "STREAM_MAX_BYTES=" + strconv.Itoa(streamBytes)
	data := filepath.Join(w.dir, "data")
	w.engines, err = rig.Start([]string{"PARLEY_DATA_DIR=" + data, "PARLEY_NATS_ADDR=127.0.0.1:0", limit}, w.log("engines"), filepath.Join(bin, "standalone"), "engines")
	if err != nil {
		return w, err
	}
	vars, err := w.engines.ReadVariables("NATS_URL", "SQLITE_PATH", "SECRETS_KEY_FILE")
	if err != nil {
		return w, err
	}
	w.env = []string{
		"NATS_URL=" + vars["NATS_URL"], "SQLITE_PATH=" + vars["SQLITE_PATH"], "SECRETS_KEY_FILE=" + vars["SECRETS_KEY_FILE"], limit,
		"RECORDER=false", "DISPATCHER=false", "BOT=webhook", "BOT_WEBHOOK_URL=" + w.webhook.url, "BOT_WEBHOOK_SECRET=" + secret,
		"BOT_WEBHOOK_TIMEOUT=2m", "BOT_WEBHOOK_DEADLINE=3m",
	}
	file, err := os.ReadFile(filepath.Join(data, "demo.json"))
	if err != nil {
		return w, err
	}
	var demo struct {
		AppID string `json:"appId"`
	}
	if err := json.Unmarshal(file, &demo); err != nil {
		return w, err
	}
	w.appID = demo.AppID
	w.bus, err = bus.Open(bus.Config{URL: vars["NATS_URL"], Name: "bench", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return w, err
	}
	return w, w.awaitBus(ctx)
}

func (w *world) awaitBus(ctx context.Context) error {
	for {
		err := w.bus.Ready(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *world) log(name string) string { return filepath.Join(w.dir, name+".log") }

// start starts a processor and returns when it is ready.
func (w *world) start(ctx context.Context, concurrency int) (*processor, error) {
	w.started++
	p := &processor{ops: rig.FreeAddr()}
	env := append(append([]string{}, w.env...), "OPS_ADDR="+p.ops, "BOT_CONCURRENCY="+strconv.Itoa(concurrency))
	var err error
	if p.Process, err = rig.Start(env, w.log("processor-"+strconv.Itoa(w.started)), filepath.Join(w.bin, "processor")); err != nil {
		return nil, err
	}
	p.Drain()
	w.processors = append(w.processors, p)
	return p, rig.AwaitReady(ctx, "http://"+p.ops+"/readyz")
}

// grow starts processors until there are n.
func (w *world) grow(ctx context.Context, n, concurrency int) error {
	for len(w.processors) < n {
		if _, err := w.start(ctx, concurrency); err != nil {
			return err
		}
	}
	return nil
}

// take removes the oldest processor from the list.
func (w *world) take() *processor {
	p := w.processors[0]
	w.processors = w.processors[1:]
	return p
}

func (w *world) stopAll() {
	for len(w.processors) > 0 {
		w.take().Stop()
	}
}

func (w *world) close() {
	w.stopAll()
	if w.bus != nil {
		w.bus.Close()
	}
	if w.engines != nil {
		w.engines.Stop()
	}
	if w.webhook != nil {
		_ = w.webhook.server.Close()
	}
	_ = os.RemoveAll(w.dir)
}

// partitions returns how many partitions of the bot each processor reads.
func (w *world) partitions(ctx context.Context) (counts []int, err error) {
	for _, p := range w.processors {
		n, err := p.metric(ctx, `parley_bus_partitions{consumer="bot",stream="INBOUND"}`)
		if err != nil {
			return nil, err
		}
		counts = append(counts, int(n))
	}
	return counts, nil
}

// metric reads one value of a processor's metrics; 0 if it is absent.
func (p *processor) metric(ctx context.Context, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.ops+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("reading metrics: %w", err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, lines.Err()
}
