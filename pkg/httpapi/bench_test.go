package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/ops"
)

const sendBody = `{"type":"TEXT","data":{"text":"Your order has been shipped and will arrive tomorrow."},` +
	`"chatId":"018f4e2a-7d3c-7b1a-9c55-2f7f3d9e8a10"}`

type sendRequest struct {
	Type   string         `json:"type"`
	Data   httpapi.Object `json:"data"`
	ChatID string         `json:"chatId"`
}

func (r *sendRequest) Validate() apperr.Fields {
	var f apperr.Fields
	if r.Type == "" {
		f.Add("type", "is required")
	}
	if len(r.Data) == 0 {
		f.Add("data", "is required")
	}
	if r.ChatID == "" {
		f.Add("chatId", "is required")
	}
	return f
}

type bareRequest struct {
	Type   string         `json:"type"`
	Data   map[string]any `json:"data"`
	ChatID string         `json:"chatId"`
}

type sent struct {
	Message string `json:"message"`
}

// bare is a handler that decodes and encodes the same JSON with plain Echo.
func bare() http.Handler {
	e := echo.New()
	e.POST("/message/send", func(c echo.Context) error {
		var r bareRequest
		if err := c.Bind(&r); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, sent{"Message sent successfully."})
	})
	return e
}

func ours(log *slog.Logger) http.Handler {
	e := httpapi.New(httpapi.Config{Service: "bench", Logger: log, Registerer: prometheus.NewRegistry()})
	e.POST("/message/send", func(c echo.Context) error {
		var r sendRequest
		if err := httpapi.Decode(c, &r); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, sent{"Message sent successfully."})
	})
	return e
}

// discard is a ResponseWriter without cost, so that the results are the handler's own.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

func benchmark(b *testing.B, h http.Handler) {
	body := bytes.NewReader(nil)
	req := httptest.NewRequest(http.MethodPost, "/message/send", io.NopCloser(body))
	req.Header.Set("Content-Type", "application/json")
	req.ContentLength = int64(len(sendBody))
	raw := []byte(sendBody)
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(raw)
		clear(w.header)
		h.ServeHTTP(w, req)
	}
}

func BenchmarkBareEcho(b *testing.B) { benchmark(b, bare()) }

func BenchmarkRequest(b *testing.B) {
	benchmark(b, ours(ops.NewLogger(ops.NewBuffer(io.Discard), "bench", slog.LevelInfo)))
}

func BenchmarkRequestWithoutLog(b *testing.B) {
	benchmark(b, ours(slog.New(slog.DiscardHandler)))
}

// benchmarkServed measures h in a real server with 64 keep-alive connections; both ends share this process.
func benchmarkServed(b *testing.B, h http.Handler) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- httpapi.Serve(ctx, ln, h, slog.New(slog.DiscardHandler), time.Second) }()
	request := []byte("POST /message/send HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(sendBody)) + "\r\n\r\n" + sendBody)
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		answer := make([]byte, 4096)
		for pb.Next() {
			if _, err := conn.Write(request); err != nil {
				b.Error(err)
				return
			}
			if n, err := conn.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200")) {
				b.Errorf("got %q, %v, want a 200", answer[:n], err)
				return
			}
		}
	})
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}

func BenchmarkServedBareEcho(b *testing.B) { benchmarkServed(b, bare()) }

func BenchmarkServed(b *testing.B) {
	benchmarkServed(b, ours(ops.NewLogger(ops.NewBuffer(io.Discard), "bench", slog.LevelInfo)))
}
