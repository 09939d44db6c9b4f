package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/bus"
)

// webhookTime is the webhook's response time.
const webhookTime = 500 * time.Millisecond

// webhook answers each message with its own text, after a delay. It holds a text that begins with "hang" for longer.
// mu guards the numbers of requests.
type webhook struct {
	hang time.Duration

	mu         sync.Mutex
	busy, peak int
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Message struct {
			Data struct {
				Text string `json:"text"`
			} `json:"data"`
		} `json:"message"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.count(1)
	defer h.count(-1)
	text := asked.Message.Data.Text
	wait := webhookTime
	if strings.HasPrefix(text, "hang") {
		wait = h.hang
	}
	pause(r.Context(), wait)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"messages":[{"type":"TEXT","data":{"text":%q}}]}`, text)
}

func (h *webhook) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy += n
	h.peak = max(h.peak, h.busy)
}

// peakSince returns the maximum number of concurrent requests since the last call.
func (h *webhook) peakSince() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	peak := h.peak
	h.peak = h.busy
	return peak
}

// deployment is the running environment: the servers, the webhook, and the current processors.
type deployment struct {
	rig        *rig.Rig
	bus        *bus.Bus
	webhook    *webhook
	server     *httptest.Server // of the webhook
	processors []*rig.Service
}

// deploy starts the servers. The caller closes the deployment, also after an error.
func deploy(ctx context.Context, bin string) (d *deployment, err error) {
	d = &deployment{webhook: &webhook{}}
	d.server = httptest.NewServer(d.webhook)
	if d.rig, err = rig.Open(bin); err != nil {
		return d, err
	}
	d.bus, err = d.rig.OpenBus(ctx)
	return d, err
}

func (d *deployment) close() {
	if d.bus != nil {
		d.bus.Close()
	}
	if d.rig != nil {
		d.rig.Close()
	}
	d.server.Close()
}

// grow starts processors until there are n.
func (d *deployment) grow(ctx context.Context, n, concurrency int) error {
	for len(d.processors) < n {
		p, err := d.rig.Service(ctx, "processor", "RECORDER=false", "DISPATCHER=false", "BOT=webhook",
			"BOT_WEBHOOK_URL="+d.server.URL, "BOT_WEBHOOK_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
			"BOT_WEBHOOK_TIMEOUT=2m", "BOT_WEBHOOK_DEADLINE=3m", "BOT_CONCURRENCY="+strconv.Itoa(concurrency))
		if err != nil {
			return err
		}
		d.processors = append(d.processors, p)
	}
	return nil
}

// oldest removes the oldest processor from the list.
func (d *deployment) oldest() *rig.Service {
	p := d.processors[0]
	d.processors = d.processors[1:]
	return p
}

func (d *deployment) stopProcessors() {
	for len(d.processors) > 0 {
		d.oldest().Stop()
	}
}

// partitions returns how many partitions of the bot each processor reads.
func (d *deployment) partitions(ctx context.Context) (counts []int, err error) {
	for _, p := range d.processors {
		n, err := partitions(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("reading metrics: %w", err)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

func partitions(ctx context.Context, p *rig.Service) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Ops+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), `parley_bus_partitions{consumer="bot",stream="INBOUND"} `); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, lines.Err()
}
