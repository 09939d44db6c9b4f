package main

import (
	"context"
	"fmt"
	"os"

	"github.com/parley-chat/parley/bench/internal/rig"
)

const messageData = `{"text":"Your order 4711 has left our warehouse. It will be with you tomorrow before noon."}`

// sendChats is the number of chats that receive the company's messages in turn; each is looked up again every two
// seconds.
const sendChats = 100

// measureSend alternates turns of POST /message/send and its two halves, after one warm-up turn of each.
func measureSend(ctx context.Context, r *rig.Rig, z sizes) (string, error) {
	service, err := r.Service(ctx, "client-api")
	if err != nil {
		return "", err
	}
	p, err := openPopulation(r)
	if err != nil {
		return "", err
	}
	defer p.close()
	visitors, err := p.visitors(ctx, sendChats)
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	echo, err := r.Start("echo", nil, self, "-echo")
	if err != nil {
		return "", err
	}
	vars, err := echo.ReadVariables("BARE_ADDR")
	if err != nil {
		return "", err
	}
	requests := make([]request, len(visitors))
	for i, v := range visitors {
		body := `{"chatId":"` + v.chatID + `","type":"TEXT","data":` + messageData + `}`
		requests[i] = request{method: "POST", path: "/message/send", token: r.Demo.AccessToken, body: body}
	}
	echoLoad := load{addr: vars["BARE_ADDR"], status: 200, requests: requests}
	sendLoad := load{addr: service.Addr, status: 200, requests: requests}
	var f sendFigures
	for range z.turns + 1 {
		half, err := measured(ctx, echoLoad, z.turn, echo, r.Engines)
		if err != nil {
			return "", fmt.Errorf("bare Echo: %w", err)
		}
		enginesBefore := r.Engines.CPU()
		publish, err := barePublish(ctx, r.NATSURL(), z.turn)
		if err != nil {
			return "", fmt.Errorf("bare publish: %w", err)
		}
		publish.engines = r.Engines.CPU() - enginesBefore
		send, err := measured(ctx, sendLoad, z.turn, service.Process, r.Engines)
		if err != nil {
			return "", fmt.Errorf("POST /message/send: %w", err)
		}
		f.echo = append(f.echo, half)
		f.publish = append(f.publish, publish)
		f.send = append(f.send, send)
	}
	return f.withoutWarmUp().table(), nil
}

// sendFigures are the turns of POST /message/send and of the two halves that bound it.
type sendFigures struct {
	send, echo []result
	publish    []result // only the rate and the servers' CPU
}

func (f sendFigures) withoutWarmUp() sendFigures {
	return sendFigures{send: f.send[1:], echo: f.echo[1:], publish: f.publish[1:]}
}

func (f sendFigures) table() string {
	t := newTable(fmt.Sprintf("POST /message/send, %d keep-alive connections, %d chats, "+
		"every answer after its JetStream ack; median of %d turns", connections, sendChats, len(f.send)))
	addRow(t, "(a) bare Echo, same JSON", f.echo...)
	addRow(t, "(b) bare JetStream publish, same event", f.publish...)
	addRow(t, "POST /message/send", f.send...)
	var bounds, halves, costs []float64
	for i, send := range f.send {
		a, b := f.echo[i], f.publish[i]
		bounds = append(bounds, send.rate()*(1/a.rate()+1/b.rate()))
		halves = append(halves, send.rate()/a.rate())
		cost := rig.PerThousand(send.cpu+send.engines, send.requests)
		costs = append(costs, cost/rig.PerThousand(a.cpu, a.requests))
	}
	return t.String() + fmt.Sprintf("\nOf the bound 1/(1/a + 1/b): %.0f%% (at least 80%%). "+
		"Of (a): %.0f%% (at least 50%%). CPU of service and engines to that of (a): %.2f.\n",
		100*rig.Median(bounds), 100*rig.Median(halves), rig.Median(costs))
}
