package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

const messageData = `{"text":"Your order 4711 has left our warehouse. It will be with you tomorrow before noon."}`

// sendFigures are the turns of POST /message/send and of the two halves that bound it.
type sendFigures struct {
	send, echo []result
	peer       []result // empty without Node
	publish    []result // only the rate and the servers' CPU
}

// sendPlan configures the measurement of POST /message/send.
type sendPlan struct {
	turns int
	turn  time.Duration
	chats int  // from 1 to visitorCount
	lean  bool // see load
}

// measureSend alternates turns of the three loads, after one warm-up turn of each.
func measureSend(ctx context.Context, r *bench, plan sendPlan) (f sendFigures, err error) {
	visitors, err := registerVisitors(ctx, r, plan.chats)
	if err != nil {
		return f, fmt.Errorf("registering visitors: %w", err)
	}
	sendLoad := load{addr: r.client, status: 200, lean: plan.lean, requests: sendRequests(r.client, r.demo.AccessToken, visitors)}
	echoLoad := load{addr: r.echoAddr, status: 200, lean: plan.lean, requests: sendRequests(r.echoAddr, r.demo.AccessToken, visitors)}
	peer, peerLoad, err := startPeer(r, plan, visitors)
	if err != nil {
		return f, fmt.Errorf("the Fastify peer: %w", err)
	}
	if peer != nil {
		defer peer.Stop()
	}
	for i := range plan.turns + 1 {
		echo, err := measured(ctx, echoLoad, plan.turn, r.echo, r.engines)
		if err != nil {
			return f, fmt.Errorf("bare Echo: %w", err)
		}
		publish, err := publishTurn(ctx, r, plan)
		if err != nil {
			return f, fmt.Errorf("bare publish: %w", err)
		}
		send, err := measured(ctx, sendLoad, plan.turn, r.clientAPI, r.engines)
		if err != nil {
			return f, fmt.Errorf("POST /message/send: %w", err)
		}
		if peer != nil {
			res, err := measured(ctx, peerLoad, plan.turn, peer, r.engines)
			if err != nil {
				return f, fmt.Errorf("the Fastify peer: %w", err)
			}
			if i > 0 {
				f.peer = append(f.peer, res)
			}
		}
		if i > 0 {
			f.echo, f.publish, f.send = append(f.echo, echo), append(f.publish, publish), append(f.send, send)
		}
	}
	return f, nil
}

// startPeer starts the equivalent Fastify server; nil without Node or its packages (`make deps`).
func startPeer(r *bench, plan sendPlan, visitors []visitor) (*rig.Process, load, error) {
	if !installed("node", "node_modules/fastify") {
		return nil, load{}, nil
	}
	chats := make([]string, len(visitors))
	for i, v := range visitors {
		chats[i] = v.chatID
	}
	env := []string{"NATS_URL=" + r.natsURL, "TOKEN=" + r.demo.AccessToken, "COMPANY_ID=" + r.demo.CompanyID, "CHATS=" + strings.Join(chats, ",")}
	p, err := rig.Start(env, r.log("fastify"), "node", "bench/peer/send.mjs")
	if err != nil {
		return nil, load{}, err
	}
	vars, err := p.ReadVariables("PEER_ADDR")
	if err != nil {
		p.Stop()
		return nil, load{}, err
	}
	addr := vars["PEER_ADDR"]
	return p, load{addr: addr, status: 200, lean: plan.lean, requests: sendRequests(addr, r.demo.AccessToken, visitors)}, nil
}

func installed(program, module string) bool {
	_, err := exec.LookPath(program)
	_, absent := os.Stat(module)
	return err == nil && absent == nil
}

// measured runs one turn of a load and adds the CPU used by the process under test and the servers.
func measured(ctx context.Context, l load, turn time.Duration, p, engines *rig.Process) (result, error) {
	before, enginesBefore := p.CPU(), engines.CPU()
	res, err := l.run(ctx, turn)
	res.cpu, res.engines, res.peakRSS = p.CPU()-before, engines.CPU()-enginesBefore, p.PeakRSS()
	return res, err
}

func publishTurn(ctx context.Context, r *bench, plan sendPlan) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	before := r.engines.CPU()
	cmd := exec.CommandContext(ctx, self, "-role=publish", "-nats="+r.natsURL, "-turn="+plan.turn.String(), "-chats="+strconv.Itoa(plan.chats))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("%w: %s", err, stderr.String())
	}
	var res bareResult
	if err := json.Unmarshal(out, &res); err != nil {
		return result{}, err
	}
	return result{
		requests: res.Publishes, took: time.Duration(res.Nanoseconds),
		cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), engines: r.engines.CPU() - before,
	}, nil
}

func sendRequests(addr, token string, visitors []visitor) [][]byte {
	requests := make([][]byte, len(visitors))
	for i, v := range visitors {
		body := `{"chatId":"` + v.chatID + `","type":"TEXT","data":` + messageData + `}`
		requests[i] = request("POST", addr, "/message/send", "x-access-token: "+token+"\r\n", body)
	}
	return requests
}

func (f sendFigures) table(plan sendPlan) string {
	w := new(strings.Builder)
	var bounds, halves []float64
	for i := range f.send {
		a, b := f.echo[i].rate(), f.publish[i].rate()
		bounds = append(bounds, f.send[i].rate()*(1/a+1/b))
		halves = append(halves, f.send[i].rate()/a)
	}
	generator := "Go's HTTP client"
	if plan.lean {
		generator = "lean generator"
	}
	fmt.Fprintf(w, "\nPOST /message/send, %d keep-alive connections, %s, %d chats, every answer after its JetStream ack; median of %d turns\n\n",
		connections, generator, plan.chats, len(f.send))
	printHead(w)
	printRow(w, "(a) bare Echo, same JSON", f.echo)
	printRow(w, "(b) bare JetStream publish, same event", f.publish)
	if len(f.peer) > 0 {
		printRow(w, "one Fastify process, same event", f.peer)
	}
	printRow(w, "POST /message/send", f.send)
	var peers, costs []float64
	for i := range f.send {
		costs = append(costs, (perThousand(f.send[i].cpu, f.send[i])+perThousand(f.send[i].engines, f.send[i]))/perThousand(f.echo[i].cpu, f.echo[i]))
	}
	fmt.Fprintf(w, "\nOf the bound 1/(1/a + 1/b): %.0f%% (at least 90%%). Of (a): %.0f%%. CPU of service and engines to that of (a): %.2f (at most 2.6).\n",
		100*rig.Median(bounds), 100*rig.Median(halves), rig.Median(costs))
	if len(f.peer) > 0 {
		for i := range f.send {
			peers = append(peers, f.send[i].rate()/f.peer[i].rate())
		}
		fmt.Fprintf(w, "Of one Fastify process with nats.js: %.2f times the rate (at least 2).\n", rig.Median(peers))
	}
	return w.String()
}

func printHead(w *strings.Builder) {
	fmt.Fprintln(w, "| load | req/s | p50 | p99 | CPU s per 1,000 | engines, CPU s per 1,000 | peak RSS |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
}

// figure is empty for an inapplicable value, such as the response latency of (b).
func figure(format string, value float64) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf(format, value)
}

func printRow(w *strings.Builder, name string, turns []result) {
	column := func(of func(result) float64) float64 {
		values := make([]float64, len(turns))
		for i, t := range turns {
			values[i] = of(t)
		}
		return rig.Median(values)
	}
	fmt.Fprintf(w, "| %s | %.0f | %s | %s | %.3f | %.3f | %s |\n", name,
		column(result.rate),
		figure("%.2f ms", column(func(r result) float64 { return r.p50.Seconds() * 1000 })),
		figure("%.2f ms", column(func(r result) float64 { return r.p99.Seconds() * 1000 })),
		column(func(r result) float64 { return perThousand(r.cpu, r) }),
		column(func(r result) float64 { return perThousand(r.engines, r) }),
		figure("%.0f MiB", column(func(r result) float64 { return float64(r.peakRSS) / (1 << 20) })))
}
