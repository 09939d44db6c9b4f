// Sizing computes the resources of a load from the unit costs of docs/benchmarks.md: cores of each service and server,
// gateways, cells.
//
//	go run ./bench/sizing -sockets 1000000 -deliveries 500000 -messages 50000
//
// docs/scaling.md explains the figures. The costs are those of a two-core machine that runs everything; replace them
// with your own, measured with `make bench`, `make bench-realtime` and `make bench-scale`.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
)

// costs are CPU seconds per 1,000 operations, and bytes.
type costs struct {
	send, sendNATS        float64 // POST /message/send in the service, and in NATS
	answer                float64 // an answer of the bot, in the processor
	deliver, deliverNATS  float64 // a reply to one socket in the gateways, and in NATS and Redis
	fanOut                float64 // each additional socket of the same room
	connection            float64 // bytes
	handshakesPerCore     float64 // per second
	concurrency, duration float64 // concurrent answers of a processor, and seconds per answer
}

// measured returns the figures of docs/benchmarks.md.
func measured() costs {
	return costs{
		send: 0.034, sendNATS: 0.016, answer: 0.205, deliver: 0.042, deliverNATS: 0.046, fanOut: 0.004,
		connection:        6.68 * 1024,
		handshakesPerCore: 4000, concurrency: 1000, duration: 0.5,
	}
}

// load is the load per second, and the number of open sockets.
type load struct {
	sends, answers, replies, deliveries, sockets float64
	// busy is the target utilisation of a core; the rest is headroom for peaks.
	busy float64
	// streamRate is the throughput of one stream's leader in messages per second: a cell has one of each stream.
	streamRate float64
}

// sizing is the resources required by a load.
type sizing struct {
	api, processors, processorsWaiting, gateways, gatewayMemory, engines, cells float64
}

// size computes the resources of a load. A reply to several sockets costs its first delivery, and a little for each
// further one.
func size(c costs, l load) sizing {
	cores := func(perSecond, cost float64) float64 { return perSecond * cost / 1000 / l.busy }
	more := math.Max(0, l.deliveries-l.replies)
	return sizing{
		api:               cores(l.sends, c.send),
		processors:        cores(l.answers, c.answer),
		processorsWaiting: math.Ceil(l.answers * c.duration / c.concurrency),
		gateways:          cores(l.replies, c.deliver) + cores(more, c.fanOut),
		gatewayMemory:     l.sockets * c.connection,
		engines:           cores(l.sends, c.sendNATS) + cores(l.replies, c.deliverNATS),
		cells:             math.Max(1, math.Ceil(math.Max(l.sends+l.answers, l.replies)/l.streamRate)),
	}
}

func main() {
	var l load
	flag.Float64Var(&l.sends, "sends", 1000, "messages of companies a second")
	flag.Float64Var(&l.answers, "answers", 1000, "messages of visitors that the bot answers, a second")
	flag.Float64Var(&l.replies, "replies", 0, "replies a second; 0: sends and answers together")
	flag.Float64Var(&l.deliveries, "deliveries", 0, "deliveries to sockets a second; 0: one for each reply")
	flag.Float64Var(&l.sockets, "sockets", 10_000, "open sockets")
	flag.Float64Var(&l.busy, "busy", 0.6, "share of a core that is used")
	flag.Float64Var(&l.streamRate, "stream-rate", 40_000, "messages a second that one stream's leader takes")
	flag.Parse()
	if l.busy <= 0 || l.streamRate <= 0 {
		fmt.Fprintln(os.Stderr, "sizing: -busy and -stream-rate must be positive")
		os.Exit(2)
	}
	if l.replies == 0 {
		l.replies = l.sends + l.answers
	}
	if l.deliveries == 0 {
		l.deliveries = l.replies
	}
	fmt.Print(report(size(measured(), l)))
}

func report(s sizing) string {
	return fmt.Sprintf(`| what | how many |
|---|---|
| cores of client-api | %.1f |
| cores of processors | %.1f |
| processors, for the answers that are awaited at once | %.0f |
| cores of gateways | %.1f |
| memory of their connections | %.1f GB |
| cores of NATS and Redis | %.1f |
| cells, by the rate of one stream | %.0f |
`, s.api, s.processors, s.processorsWaiting, s.gateways, s.gatewayMemory/1e9, s.engines, s.cells)
}
