package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/webhook"
)

const (
	webhookCompanies = 100    // each with an endpoint and ten chats
	webhookEvents    = 20_000 // as fast as possible
	webhookRate      = 500    // per second, of the paced load
	webhookPaced     = 5_000
)

// webhookFigure is the throughput of one processor with a receiver that responds immediately.
type webhookFigure struct {
	paced, fast webhookLoad
}

type webhookLoad struct {
	events       int
	took         time.Duration // from the first publication to the last delivery
	cpu, engines time.Duration
	doubled      int
}

// measureWebhooks publishes visitors' messages and counts deliveries at the receiver, which runs in this process: its
// CPU is in neither figure, but uses a share of the cores.
func measureWebhooks(ctx context.Context, r *bench, bin string) (f webhookFigure, err error) {
	receiver, err := startReceiver()
	if err != nil {
		return f, err
	}
	defer receiver.close()
	p, err := openPopulation(r)
	if err != nil {
		return f, err
	}
	defer p.close()
	senders, err := p.senders(ctx, receiver.url)
	if err != nil {
		return f, err
	}
	b, err := bus.Open(bus.Config{URL: r.natsURL, Name: "bench", Observe: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return f, err
	}
	defer b.Close()
	ops := rig.FreeAddr()
	processor, err := rig.Start([]string{
		"OPS_ADDR=" + ops, "BOT=external", "DISPATCHER=false", "RECORDER=false", "WEBHOOK_ALLOW_CIDRS=127.0.0.0/8",
	}, r.log("processor-webhooks"), filepath.Join(bin, "processor"))
	if err != nil {
		return f, err
	}
	defer processor.Stop()
	processor.Drain()
	if err := rig.AwaitReady(ctx, "http://"+ops+"/readyz"); err != nil {
		return f, err
	}
	deliver := func(events, rate int) (l webhookLoad, err error) {
		receiver.forget()
		began, cpu, engines := time.Now(), processor.CPU(), r.engines.CPU()
		if err := publishMessages(ctx, b, senders, events, rate); err != nil {
			return l, err
		}
		doubled, err := receiver.await(ctx, events)
		return webhookLoad{events, time.Since(began), processor.CPU() - cpu, r.engines.CPU() - engines, doubled}, err
	}
	if _, err = deliver(webhookCompanies, 0); err != nil { // warms up connections and caches
		return f, err
	}
	if f.paced, err = deliver(webhookPaced, webhookRate); err != nil {
		return f, err
	}
	f.fast, err = deliver(webhookEvents, 0)
	return f, err
}

// sender is a visitor of a company that has an endpoint.
type sender struct {
	visitor
	companyID, appID string
}

// senders creates the companies; their visitors take turns, so that each endpoint gets its share.
func (p *population) senders(ctx context.Context, url string) ([]sender, error) {
	const chats = 10
	made := make([]sender, chats*webhookCompanies)
	for n := range webhookCompanies {
		p.demo.CompanyID, p.demo.AppID = uuid.NewString(), uuid.NewString()
		if err := p.store.PutCompany(ctx, chat.Company{ID: p.demo.CompanyID}); err != nil {
			return nil, err
		}
		at := time.Now().Add(-time.Hour)
		err := p.store.CreateWebhookEndpoint(ctx, webhook.Endpoint{
			ID: uuid.NewString(), CompanyID: p.demo.CompanyID, URL: url, Events: []string{webhook.TypeMessageReceived}, CreatedAt: at,
			Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, at)},
		})
		if err != nil {
			return nil, err
		}
		visitors, err := p.visitors(ctx, chats)
		if err != nil {
			return nil, err
		}
		for i, v := range visitors {
			made[i*webhookCompanies+n] = sender{v, p.demo.CompanyID, p.demo.AppID}
		}
	}
	return made, nil
}

// publishMessages publishes visitors' messages at a rate; 0: as fast as possible.
func publishMessages(ctx context.Context, b *bus.Bus, senders []sender, events, rate int) error {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4 * connections)
	for n := range events {
		if rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate))))
		}
		group.Go(func() error {
			s := senders[n%len(senders)]
			return b.Publish(ctx, event.Derived(), event.VisitorMessageAccepted{
				CompanyID: s.companyID, AppID: s.appID, ChatUserID: s.id, ChatID: s.chatID,
				Message: chat.Message{
					ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now().UTC(), Type: chat.Text, Data: []byte(messageData), NameOfSender: "Ada",
				},
			})
		})
	}
	return group.Wait()
}

// receiver responds to every delivery immediately, and records its id.
type receiver struct {
	server *http.Server
	url    string

	mu      sync.Mutex
	ids     map[string]bool
	doubled int
}

func startReceiver() (*receiver, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + ln.Addr().String()}
	r.forget()
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = r.server.Serve(ln) }()
	return r, nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	id := request.Header.Get("webhook-id")
	if r.ids[id] {
		r.doubled++
	}
	r.ids[id] = true
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) close() { _ = r.server.Close() }

func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids, r.doubled = make(map[string]bool, webhookEvents), 0
}

// await returns when n deliveries have arrived, and how many were duplicates. It fails after ten seconds without a
// delivery.
func (r *receiver) await(ctx context.Context, n int) (doubled int, err error) {
	have, at := -1, time.Now()
	for ctx.Err() == nil {
		r.mu.Lock()
		now, doubled := len(r.ids), r.doubled
		r.mu.Unlock()
		if now >= n {
			return doubled, nil
		}
		if now != have {
			have, at = now, time.Now()
		}
		if time.Since(at) > 10*time.Second {
			return 0, fmt.Errorf("%d of %d deliveries arrived", now, n)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, ctx.Err()
}

func (f webhookFigure) table() string {
	row := func(name string, l webhookLoad) string {
		n := float64(l.events)
		return fmt.Sprintf("| %s | %.0f | %.0f | %.3f | %.3f | %d |\n", name, n/l.took.Seconds(), n/l.cpu.Seconds(), l.cpu.Seconds()*1000/n,
			l.engines.Seconds()*1000/n, l.doubled)
	}
	return fmt.Sprintf("\nWebhooks, one processor, %d endpoints that answer at once.\n\n", webhookCompanies) +
		"| load | deliveries/s | for each core of the processor | CPU s per 1,000 | engines, CPU s per 1,000 | doubled |\n|---|---|---|---|---|---|\n" +
		row(fmt.Sprintf("paced, %d at %d/s", webhookPaced, webhookRate), f.paced) + row(fmt.Sprintf("as fast as it goes, %d", webhookEvents), f.fast)
}
