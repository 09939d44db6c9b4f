package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

const (
	messageText = "Your order 4711 has left our warehouse. It will be with you tomorrow before noon."
	messageData = `{"text":"` + messageText + `"}`
)

// sendChats is the number of chats that receive the company's messages in turn; each is looked up again every two
// seconds.
const sendChats = 100

// send measures POST /message/send in alternation with its two unavoidable halves, after one warm-up turn of
// each. In sequence they bound it at 1/(1/a + 1/b). The processing layer does not run, because it would compete for the
// cores. The caller is Go's HTTP client (docs/decisions/0013-code.md).
func (b *bench) send(ctx context.Context, d *deployment) {
	service := d.serve(ctx, nil, "bin/client-api")
	self, err := os.Executable()
	d.check(err)
	echo := d.serve(ctx, nil, self, "-only", "echo")
	d.visitors = d.register(ctx, sendChats)
	requests := d.sendRequests()
	loads := []load{
		d.httpLoad("(a) bare Echo, same JSON", echo, 200, requests),
		d.barePublish(),
		d.httpLoad("POST /message/send", service, 200, requests),
	}
	turns := make([][]turn, len(loads))
	count := size(b, 5, 1)
	for n := range count + 1 {
		for i, l := range loads {
			t := d.measure(ctx, l)
			if n > 0 {
				turns[i] = append(turns[i], t)
			}
		}
	}
	t := newLoadTable(fmt.Sprintf("POST /message/send, %d keep-alive connections, %d chats, "+
		"every answer after its JetStream ack; median of %d turns", connections, sendChats, count))
	for i, l := range loads {
		t.addTurns(l.name, turns[i]...)
	}
	fmt.Print(t, ratios(turns[0], turns[1], turns[2]))
}

// sendRequests returns a request for each visitor's chat.
func (d *deployment) sendRequests() []request {
	requests := make([]request, len(d.visitors))
	for i, v := range d.visitors {
		body := `{"chatId":"` + v.chatID + `","type":"TEXT","data":` + messageData + `}`
		requests[i] = request{method: "POST", path: "/message/send", token: d.demo.AccessToken, body: body}
	}
	return requests
}

// ratios returns the medians of the ratios of each turn to its halves.
func ratios(echo, publish, send []turn) string {
	var bounds, halves, costs []float64
	for i, send := range send {
		a, b := echo[i], publish[i]
		bounds = append(bounds, send.rate()*(1/a.rate()+1/b.rate()))
		halves = append(halves, send.rate()/a.rate())
		cost := perThousand(send.cpu+send.engines, send.requests)
		costs = append(costs, cost/perThousand(a.cpu, a.requests))
	}
	return fmt.Sprintf("\nOf the bound 1/(1/a + 1/b): %.0f%% (at least 80%%). "+
		"Of (a): %.0f%% (at least 50%%). CPU of service and engines to that of (a): %.2f.\n",
		100*median(bounds), 100*median(halves), median(costs))
}

// serveEcho is half (a): it decodes and encodes the same JSON, and does nothing else. Like a service it takes HTTP_ADDR
// and OPS_ADDR, and serves until ctx ends.
func (b *bench) serveEcho(ctx context.Context) {
	type sendRequest struct {
		ChatID string          `json:"chatId"`
		Type   string          `json:"type"`
		Data   json.RawMessage `json:"data"`
	}
	type sendAnswer struct {
		Message         string `json:"message"`
		MessageID       string `json:"messageId"`
		WindowExpiresAt string `json:"windowExpiresAt"`
	}
	e := echo.New()
	e.POST("/message/send", func(c echo.Context) error {
		var in sendRequest
		if err := c.Bind(&in); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, sendAnswer{
			Message:         "Message sent successfully",
			MessageID:       in.ChatID,
			WindowExpiresAt: chat.TimeFormat,
		})
	})
	e.GET("/readyz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	server := &http.Server{Addr: os.Getenv("HTTP_ADDR"), Handler: e}
	ops := &http.Server{Addr: os.Getenv("OPS_ADDR"), Handler: e}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = ops.ListenAndServe() }()
	b.check(server.ListenAndServe())
}

// barePublish is half (b): synchronous JetStream publishes of the same event, with the same headers, from as many
// goroutines as the load has connections. It runs in the generator's process, so its CPU is not known.
func (d *deployment) barePublish() load {
	nc, err := nats.Connect(d.vars["NATS_URL"])
	d.check(err)
	d.cleanup(nc.Close)
	js, err := jetstream.New(nc)
	d.check(err)
	return load{name: "(b) bare JetStream publish, same event", do: func(ctx context.Context, n int) error {
		_, err := js.PublishMsg(ctx, sameEvent(d.demo.CompanyID, d.visitors[n%len(d.visitors)].chatID))
		return err
	}}
}

// sameEvent returns the event that client-api publishes for the benchmark's request.
func sameEvent(companyID, chatID string) *nats.Msg {
	e := event.CompanyMessageAccepted{CompanyID: companyID, ChatID: chatID, Message: newMessage(messageData)}
	return eventMsg(e, "/client-api", e.Message.CreatedAt)
}

// eventMsg returns an event as a bus publishes it.
func eventMsg(e event.Event, source string, at time.Time) *nats.Msg {
	return &nats.Msg{
		Subject: e.Subject(),
		Data:    e.AppendJSON(nil),
		Header: nats.Header{
			nats.MsgIdHdr:        {e.EventID()},
			"ce-id":              {e.EventID()},
			"ce-type":            {e.Type()},
			"ce-source":          {source},
			"ce-time":            {at.Format(chat.TimeFormat)},
			"ce-specversion":     {"1.0"},
			"ce-datacontenttype": {"application/json"},
		},
	}
}

// newMessage returns a message of the company.
func newMessage(data string) chat.Message {
	return chat.Message{
		ID:            uuid.Must(uuid.NewV7()).String(),
		CreatedAt:     time.Now().UTC(),
		Type:          chat.Text,
		Data:          json.RawMessage(data),
		NameOfSender:  "Support",
		IsFromSupport: true,
	}
}
