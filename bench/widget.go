package main

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// historySize is the number of messages in a chat of the hot and the cold visitors.
const historySize = 100

// widget measures the visitors' side: registrations, messages, and histories, of few visitors (hot) and of many (cold),
// with few and with many messages in the table.
func (b *bench) widget(ctx context.Context, d *deployment) {
	service := d.serve(ctx, nil, "bin/widget-api")
	hot := d.register(ctx, size(b, 100, 20))
	d.write(ctx, hot, historySize)
	visitors := size(b, 20_000, 100)
	t := newLoadTable(fmt.Sprintf("Widget API, %d keep-alive connections, on SQLite; hot: %d visitors, cold: %d",
		connections, len(hot), visitors))
	add := func(name string, status int, requests []request) {
		l := d.httpLoad(name, service, status, requests)
		t.addTurns(name, d.measure(ctx, l))
	}
	history := request{method: "GET", path: "/message"}

	// Few messages in the table, and pages of a long chat; a warm-up before.
	short := d.register(ctx, len(hot))
	d.write(ctx, short, 10)
	long := d.register(ctx, 1)
	ids := d.write(ctx, long, size(b, 10_000, 200))
	d.measure(ctx, d.httpLoad("warm-up", service, 200, toEach(hot, history)))
	add(fmt.Sprintf("GET /message, 100 messages, hot, %d in the table", len(hot)*historySize), 200, toEach(hot, history))
	page := request{method: "GET", path: "/message?limit=10"}
	add("GET /message?limit=10, anywhere in a chat of 10", 200, toEach(short, page))
	add(fmt.Sprintf("GET /message?limit=10, anywhere in a chat of %d", len(ids)), 200, anywhere(long[0], ids))

	// Many messages in the table, and requests that write.
	messages := size(b, 1_000_000, 5000)
	cold := d.register(ctx, visitors)
	withHistory := cold[:min(visitors, messages/historySize)]
	d.write(ctx, withHistory, historySize)
	inTable := fmt.Sprintf(", %d in the table", messages)
	add("GET /message, 100 messages, hot"+inTable, 200, toEach(hot, history))
	add("GET /message, 100 messages, cold"+inTable, 200, toEach(withHistory, history))
	message := request{method: "POST", path: "/message", body: `{"type":"TEXT","data":` + messageData + `}`}
	add("POST /message, hot", 201, toEach(hot, message))
	add("POST /message, cold", 201, toEach(cold, message))
	add("POST /register, new visitors", 200, registrations(d.demo.AppID, size(b, 60_000, 20_000)))
	fmt.Print(t)
}

// toEach returns a request of each visitor.
func toEach(visitors []visitor, r request) []request {
	requests := make([]request, len(visitors))
	for i, v := range visitors {
		r.token = v.token
		requests[i] = r
	}
	return requests
}

// anywhere returns requests for pages of a chat before random messages.
func anywhere(v visitor, ids []string) []request {
	requests := make([]request, 2000)
	for i := range requests {
		before := ids[rand.IntN(len(ids))]
		requests[i] = request{method: "GET", path: "/message?limit=10&before=" + before, token: v.token}
	}
	return requests
}

func registrations(appID string, n int) []request {
	requests := make([]request, n)
	for i := range requests {
		const form = `{"appId":%q,"firstName":"Ada","lastName":"Lovelace","email":"new-%d@example.com"}`
		requests[i] = request{method: "POST", path: "/register", body: fmt.Sprintf(form, appID, i)}
	}
	return requests
}
