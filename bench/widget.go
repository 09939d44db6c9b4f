package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// visitor is a registered visitor with an open chat.
type visitor struct {
	id     string
	token  string
	chatID string
}

// registerVisitors registers n visitors and gets their chats from the events on NATS.
func registerVisitors(ctx context.Context, r *bench, n int) ([]visitor, error) {
	nc, err := nats.Connect(r.natsURL)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	registered, err := nc.SubscribeSync(subject.AllRegistrations)
	if err != nil {
		return nil, err
	}
	if err := nc.Flush(); err != nil {
		return nil, err
	}
	visitors := make([]visitor, n)
	for i := range visitors {
		if visitors[i].token, err = register(ctx, r, fmt.Sprintf("visitor-%d@example.com", i)); err != nil {
			return nil, err
		}
		msg, err := registered.NextMsg(10 * time.Second)
		if err != nil {
			return nil, err
		}
		var e event.VisitorRegistered
		if err := json.Unmarshal(msg.Data, &e); err != nil {
			return nil, err
		}
		visitors[i].chatID = e.ChatID
	}
	return visitors, nil
}

func register(ctx context.Context, r *bench, email string) (string, error) {
	var answer struct {
		AccessToken string `json:"accessToken"`
	}
	return answer.AccessToken, call(ctx, "POST", "http://"+r.widget+"/register", "", registration(r, email), &answer)
}

func registration(r *bench, email string) string {
	return `{"appId":"` + r.demo.AppID + `","firstName":"Ada","lastName":"Lovelace","email":"` + email + `"}`
}

func call(ctx context.Context, method, url, token, body string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	return json.Unmarshal(text, answer)
}

// figureRow is one load on the Widget API.
type figureRow struct {
	name string
	result
}

// measureWidget measures the visitors' side: registrations, messages, and histories, of few visitors (hot) and of many
// (cold), with few and with many messages in the table.
func measureWidget(ctx context.Context, r *bench, plan sendPlan) ([]figureRow, error) {
	p, err := populate(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("preparing visitors: %w", err)
	}
	defer p.close()
	var rows []figureRow
	turn := func(name string, status int, requests [][]byte) error {
		l := load{addr: r.widget, requests: requests, status: status, lean: plan.lean}
		res, err := measured(ctx, l, plan.turn, r.widgetAPI, r.engines)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, figureRow{name, res})
		return nil
	}
	history := func(visitors []visitor, query string) [][]byte {
		return requestsOf(visitors, func(v visitor) []byte {
			return request("GET", r.widget, "/message"+query, "Authorization: Bearer "+v.token+"\r\n", "")
		})
	}
	const message = `{"type":"TEXT","data":` + messageData + `}`
	post := func(visitors []visitor) [][]byte {
		return requestsOf(visitors, func(v visitor) []byte {
			return request("POST", r.widget, "/message", "Authorization: Bearer "+v.token+"\r\n", message)
		})
	}
	var register [][]byte
	for i := range 60_000 {
		register = append(register, request("POST", r.widget, "/register", "", registration(r, fmt.Sprintf("new-%d@example.com", i))))
	}
	// The first turn of each pair is a warm-up.
	if err := turn("", 200, history(p.hot, "")); err != nil {
		return nil, err
	}
	rows = rows[:0]
	steps := []func() error{
		func() error {
			return turn("GET /message, 100 messages, hot, 10,000 in the table", 200, history(p.hot, ""))
		},
		func() error {
			return turn("GET /message?limit=10, anywhere in a chat of 10", 200, history(p.short, "?limit=10"))
		},
		func() error {
			return turn("GET /message?limit=10, anywhere in a chat of 10,000", 200, p.anywhere(r))
		},
		func() error { return p.fill(ctx) },
		func() error {
			return turn("GET /message, 100 messages, hot, 1,000,000 in the table", 200, history(p.hot, ""))
		},
		func() error {
			return turn("GET /message, 100 messages, cold, 1,000,000 in the table", 200, history(p.cold[:coldChats], ""))
		},
		func() error { return turn("POST /message, hot", 201, post(p.hot)) },
		func() error { return turn("POST /message, cold", 201, post(p.cold)) },
		func() error { return turn("POST /register, new visitors", 200, register) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func requestsOf(visitors []visitor, build func(visitor) []byte) [][]byte {
	requests := make([][]byte, len(visitors))
	for i, v := range visitors {
		requests[i] = build(v)
	}
	return requests
}

func widgetTable(rows []figureRow) string {
	w := new(strings.Builder)
	fmt.Fprintf(w, "\nWidget API, %d keep-alive connections, on SQLite; hot: 100 visitors, cold: 20,000\n\n", connections)
	printHead(w)
	for _, f := range rows {
		printRow(w, f.name, []result{f.result})
	}
	return w.String()
}
