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
	token  string
	chatID string
}

// registerVisitors registers n visitors and learns their chats as anyone would: from the events on NATS.
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

// widgetFigure is one load on the Widget API.
type widgetFigure struct {
	name string
	result
}

// measureWidget measures the visitor's side: registrations of new visitors, messages of many visitors, and the history of a chat
// that holds 100 messages.
func measureWidget(ctx context.Context, r *bench, visitors []visitor, plan sendPlan) ([]widgetFigure, error) {
	const message = `{"type":"TEXT","data":` + messageData + `}`
	full := visitors[0]
	for range 100 {
		var record json.RawMessage
		if err := call(ctx, "POST", "http://"+r.widget+"/message", full.token, message, &record); err != nil {
			return nil, err
		}
	}
	var register, post [][]byte
	for i := range 20_000 {
		register = append(register, request("POST", r.widget, "/register", "", registration(r, fmt.Sprintf("new-%d@example.com", i))))
	}
	for _, v := range visitors[1:] {
		post = append(post, request("POST", r.widget, "/message", "Authorization: Bearer "+v.token+"\r\n", message))
	}
	loads := []struct {
		name string
		load
	}{
		{"GET /message, 100 messages", load{addr: r.widget, requests: [][]byte{request("GET", r.widget, "/message", "Authorization: Bearer "+full.token+"\r\n", "")}, status: 200}},
		{"POST /message", load{addr: r.widget, requests: post, status: 201}},
		{"POST /register", load{addr: r.widget, requests: register, status: 200}},
	}
	var figures []widgetFigure
	for _, l := range loads {
		l.lean = plan.lean
		res, err := measured(ctx, l.load, plan.turn, r.widgetAPI, r.engines)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		figures = append(figures, widgetFigure{l.name, res})
	}
	return figures, nil
}

func printWidget(w *strings.Builder, figures []widgetFigure) {
	fmt.Fprintf(w, "\nWidget API, %d keep-alive connections, on the embedded FerretDB\n\n", connections)
	printHead(w)
	for _, f := range figures {
		printRow(w, f.name, []result{f.result})
	}
}
