package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// thinking is the webhook's response time.
const thinking = 500 * time.Millisecond

// webhook answers each message with its own text, after a delay. It holds a text that begins with "hang" for longer.
type webhook struct {
	server *http.Server
	url    string
	hang   time.Duration

	mu         sync.Mutex
	busy, peak int
}

func startWebhook() (*webhook, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &webhook{url: "http://" + ln.Addr().String()}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = h.server.Serve(ln) }()
	return h, nil
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Message struct {
			Data struct {
				Text string `json:"text"`
			} `json:"data"`
		} `json:"message"`
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &asked) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.enter()
	defer h.leave()
	text := asked.Message.Data.Text
	wait := thinking
	if strings.HasPrefix(text, "hang") {
		wait = h.hang
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return
	}
	answer, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"type": "TEXT", "data": map[string]string{"text": text}}}}) // strings: always encodes
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

func (h *webhook) enter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy++
	h.peak = max(h.peak, h.busy)
}

func (h *webhook) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy--
}

// most returns the maximum number of concurrent requests since the last call.
func (h *webhook) most() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	peak := h.peak
	h.peak = h.busy
	return peak
}
