package http_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	nethttp "net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/services/client-api/internal/access"
	"github.com/parley-chat/parley/services/client-api/internal/http"
	"github.com/parley-chat/parley/services/client-api/internal/message"
)

const (
	companyID = "11111111-1111-4111-8111-111111111111"
	chatID    = "0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f"
)

// directory answers like a warm cache.
type directory struct{ token chat.AccessToken }

func (d directory) AccessToken(context.Context, string) (chat.AccessToken, error) {
	return d.token, nil
}

func (d directory) Chat(_ context.Context, id string) (chat.Chat, error) {
	return chat.Chat{ID: id, CompanyID: companyID, AppID: companyID, WindowStartedAt: time.Now()}, nil
}

func (d directory) FreshChat(ctx context.Context, id string) (chat.Chat, error) {
	return d.Chat(ctx, id)
}

func (d directory) Application(context.Context, string) (chat.Application, error) {
	return chat.Application{BotName: "Bo"}, nil
}

// encoder encodes events and does not send them.
type encoder struct{ buf []byte }

func (p *encoder) Publish(_ context.Context, _ event.Account, e event.Event) error {
	p.buf = e.AppendJSON(p.buf[:0])
	return nil
}

// discard is a ResponseWriter without cost, so that only the handler is measured.
type discard struct {
	header nethttp.Header
	status int
}

func (d *discard) Header() nethttp.Header      { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// BenchmarkSend measures POST /message/send without net/http, the caches and the publish.
func BenchmarkSend(b *testing.B) {
	secret, token := credential.NewAccessToken(companyID, "bench", time.Now(), time.Time{})
	d := directory{token}
	api := http.New(http.Config{
		Authenticator: access.NewAuthenticator(d, time.Now),
		Messages:      message.NewSender(d, nil, &encoder{}, nil, time.Now),
		Logger:        ops.NewLogger(io.Discard, "bench", slog.LevelInfo),
		Registerer:    prometheus.NewRegistry(),
	})
	raw := []byte(`{"type":"TEXT","data":{"text":"Your order has been shipped and will arrive tomorrow."},"chatId":"` + chatID + `"}`)
	body := bytes.NewReader(nil)
	req := httptest.NewRequest(nethttp.MethodPost, "/message/send", io.NopCloser(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-access-token", secret)
	req.ContentLength = int64(len(raw))
	w := &discard{header: nethttp.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(raw)
		clear(w.header)
		if api.ServeHTTP(w, req); w.status != nethttp.StatusOK {
			b.Fatalf("got %d, want 200", w.status)
		}
	}
}
