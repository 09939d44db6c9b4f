package panel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
)

// TestAbuseByLargeRequests has the users of two companies read pages of applications of 1 MiB, change such
// applications, and send PDF files of 4 MiB, with as many requests in parallel as they may have. The memory of the panel stays
// bounded, and another company is served.
func TestAbuseByLargeRequests(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is read from /proc")
	}
	t.Parallel()
	applications, mostMemory, padding := 8, 256<<20, 4<<20
	if raced { // everything takes many times as long, and more memory
		applications, mostMemory, padding = 2, 3*mostMemory, 0
	}
	users, lasts := 2, time.Second
	if os.Getenv("PARLEY_FAULTS") == "long" {
		users, lasts = 8, 20*time.Second
	}
	w := newWorld(t, unlimited)
	base, pid, _ := w.child()
	configs, err := json.Marshal(map[string]string{"custom": strings.Repeat("x", 1<<20-2000)})
	w.must(err)
	flooders := map[*browser]string{} // and an application that each may change
	for _, c := range []company{w.acme, w.other} {
		app := ""
		for range applications {
			app = uuid.NewString()
			w.must(w.store.PutApplication(t.Context(), chat.Application{
				ID: app, CompanyID: c.id, Provider: chat.ProviderWidget, Name: "large", BotName: "large", WidgetConfigs: configs,
			}))
		}
		for n := range users {
			b := w.session(w.user(fmt.Sprintf("large%d@%s.example", n, c.id), account.Owner, c.id))
			b.base, flooders[b] = base, app
		}
	}
	victim := w.session(w.seed("victims", "3").users[account.Agent])
	victim.base = base
	before := resident(t, pid)

	change := `{"name":"large","botName":"large","allowedOrigins":[],"fileRetentionSeconds":0,"widgetConfigs":` + string(configs) + `}`
	file := pdfOf(t, "Soup") + strings.Repeat("%\n", padding/2)
	for _, kind := range []struct {
		name    string
		request func(b *browser) *http.Request
		allowed int
	}{
		{"pages", func(b *browser) *http.Request {
			return b.request(http.MethodGet, "/api/applications?limit=200", "")
		}, mostMemory},
		{"changes", func(b *browser) *http.Request {
			return b.request(http.MethodPut, "/api/applications/"+flooders[b], change)
		}, mostMemory},
		// The last one, because the memory of the conversion goes back after a while.
		{"PDF files", func(b *browser) *http.Request {
			return b.request(http.MethodPost, "/api/documents/pdf", file, "Content-Type", "application/pdf")
		}, mostMemory + 256<<20},
	} {
		name := kind.name
		flood := startFlood(t, flooders, kind.request)
		most, slowest, answered := before, time.Duration(0), 0
		for began := time.Now(); time.Since(began) < lasts || flood.served.Load() == 0 && time.Since(began) < limit; {
			asked := time.Now()
			if a := victim.do(http.MethodGet, "/api/chats", ""); a.Status != http.StatusOK {
				t.Errorf("%s: another company got %d %s, want 200", name, a.Status, a.Body)
			}
			answered++
			slowest, most = max(slowest, time.Since(asked)), max(most, resident(t, pid))
			time.Sleep(10 * time.Millisecond)
		}
		flood.stop()
		t.Logf("%s: %d users, %d served, %d refused; the panel had %d MB before and at most %d; %d requests of another company, the slowest %v",
			name, len(flooders), flood.served.Load(), flood.refused.Load(), before>>20, most>>20, answered, slowest)
		if flood.served.Load() == 0 {
			t.Errorf("%s: got none served", name)
		}
		if most > kind.allowed {
			t.Errorf("%s: the panel had %d MB, want at most %d", name, most>>20, kind.allowed>>20)
		}
	}
}

// flood is requests that are sent until stop.
type flood struct {
	stop            func()
	served, refused atomic.Int64
}

// startFlood has each browser send as many requests in parallel as a user may have.
func startFlood(t *testing.T, flooders map[*browser]string, request func(*browser) *http.Request) *flood {
	t.Helper()
	const inFlight = 16
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	f := &flood{stop: func() { cancel(); all.Wait() }}
	t.Cleanup(f.stop)
	for b := range flooders {
		for range inFlight {
			all.Go(func() {
				for ctx.Err() == nil {
					response, err := b.streams.RoundTrip(request(b).WithContext(ctx))
					if err != nil {
						continue
					}
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
					if response.StatusCode == http.StatusOK {
						f.served.Add(1)
					} else {
						f.refused.Add(1)
					}
				}
			})
		}
	}
	return f
}
