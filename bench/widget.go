package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// historySize is the number of messages in a chat of the hot and the cold visitors.
const historySize = 100

// widgetLoad is one load on the Widget API.
type widgetLoad struct {
	name     string
	status   int
	requests []request
}

// measureWidget measures the visitors' side: registrations, messages, and histories, of few visitors (hot) and of many
// (cold), with few and with many messages in the table.
func measureWidget(ctx context.Context, r *rig.Rig, z sizes) (string, error) {
	service, err := r.Service(ctx, "widget-api")
	if err != nil {
		return "", err
	}
	p, err := openPopulation(r)
	if err != nil {
		return "", err
	}
	defer p.close()
	t := newTable(fmt.Sprintf("Widget API, %d keep-alive connections, on SQLite; hot: %d visitors, cold: %d",
		connections, z.hot, z.cold))
	run := func(loads []widgetLoad) error {
		for _, w := range loads {
			res, err := measured(ctx, load{service.Addr, w.requests, w.status}, z.turn, service.Process, r.Engines)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if w.name != "" { // the first load is a warm-up
				addRow(t, w.name, res)
			}
		}
		return nil
	}
	small, err := p.smallTable(ctx, z)
	if err != nil {
		return "", fmt.Errorf("preparing visitors: %w", err)
	}
	if err := run(small.loads(z)); err != nil {
		return "", err
	}
	cold, err := p.visitors(ctx, z.cold)
	if err != nil {
		return "", fmt.Errorf("preparing visitors: %w", err)
	}
	withHistory := cold[:min(z.cold, z.table/historySize)]
	if _, err := p.write(ctx, withHistory, historySize); err != nil {
		return "", fmt.Errorf("writing histories: %w", err)
	}
	inTable := fmt.Sprintf(", %d in the table", z.table)
	err = run([]widgetLoad{
		{"GET /message, 100 messages, hot" + inTable, 200, historyRequests(small.hot, "")},
		{"GET /message, 100 messages, cold" + inTable, 200, historyRequests(withHistory, "")},
		{"POST /message, hot", 201, writeRequests(small.hot)},
		{"POST /message, cold", 201, writeRequests(cold)},
		{"POST /register, new visitors", 200, registerRequests(r.Demo.AppID, z.register)},
	})
	return t.String(), err
}

// smallTable is the visitors of the loads on a table with few messages.
type smallTable struct {
	hot, short []visitor
	long       visitor
	cursors    []string // ids of messages of the long chat
}

func (p *population) smallTable(ctx context.Context, z sizes) (s smallTable, err error) {
	if s.hot, err = p.visitors(ctx, z.hot); err != nil {
		return s, err
	}
	if s.short, err = p.visitors(ctx, z.hot); err != nil {
		return s, err
	}
	long, err := p.visitors(ctx, 1)
	if err != nil {
		return s, err
	}
	s.long = long[0]
	if _, err := p.write(ctx, s.hot, historySize); err != nil {
		return s, err
	}
	if _, err := p.write(ctx, s.short, 10); err != nil {
		return s, err
	}
	s.cursors, err = p.write(ctx, long, z.long)
	return s, err
}

func (s smallTable) loads(z sizes) []widgetLoad {
	anywhere := make([]request, 2000)
	for i := range anywhere {
		before := s.cursors[rand.IntN(len(s.cursors))]
		anywhere[i] = request{method: "GET", path: "/message?limit=10&before=" + before, token: s.long.token}
	}
	inTable := fmt.Sprintf(", %d in the table", z.hot*historySize)
	return []widgetLoad{
		{"", 200, historyRequests(s.hot, "")},
		{"GET /message, 100 messages, hot" + inTable, 200, historyRequests(s.hot, "")},
		{"GET /message?limit=10, anywhere in a chat of 10", 200, historyRequests(s.short, "?limit=10")},
		{fmt.Sprintf("GET /message?limit=10, anywhere in a chat of %d", z.long), 200, anywhere},
	}
}

func historyRequests(visitors []visitor, query string) (requests []request) {
	for _, v := range visitors {
		requests = append(requests, request{method: "GET", path: "/message" + query, token: v.token})
	}
	return requests
}

func writeRequests(visitors []visitor) (requests []request) {
	for _, v := range visitors {
		body := `{"type":"TEXT","data":` + messageData + `}`
		requests = append(requests, request{method: "POST", path: "/message", token: v.token, body: body})
	}
	return requests
}

func registerRequests(appID string, n int) (requests []request) {
	for i := range n {
		const form = `{"appId":%q,"firstName":"Ada","lastName":"Lovelace","email":"new-%d@example.com"}`
		body := fmt.Sprintf(form, appID, i)
		requests = append(requests, request{method: "POST", path: "/register", body: body})
	}
	return requests
}
