package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// bareEcho is half (a): it decodes and encodes the same JSON, and does nothing else. It prints BARE_ADDR=... and serves
// until it is stopped.
func bareEcho() error {
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
	e.HideBanner = true
	e.HidePort = true
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
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("BARE_ADDR=%s\n", ln.Addr())
	return http.Serve(ln, e)
}

// barePublish is half (b): synchronous JetStream publishes of the same event, with the same headers, from as many
// goroutines as the load has connections. It runs in the generator's process, so its CPU is not known.
func barePublish(ctx context.Context, url string, d time.Duration) (result, error) {
	nc, err := nats.Connect(url)
	if err != nil {
		return result{}, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return result{}, err
	}
	companyID := uuid.NewString()
	chats := make([]string, sendChats)
	for i := range chats {
		chats[i] = uuid.NewString()
	}
	counts := make([]int, connections)
	errs := make([]error, connections)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			for time.Since(begin) < d && errs[i] == nil {
				chatID := chats[(i+counts[i]*connections)%len(chats)]
				_, errs[i] = js.PublishMsg(ctx, sameEvent(companyID, chatID))
				counts[i]++
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	total := 0
	for _, n := range counts {
		total += n
	}
	return result{requests: total, took: took}, errors.Join(errs...)
}

// sameEvent returns the event that client-api publishes for the benchmark's request.
func sameEvent(companyID, chatID string) *nats.Msg {
	e := event.CompanyMessageAccepted{CompanyID: companyID, ChatID: chatID, Message: newMessage()}
	return &nats.Msg{
		Subject: e.Subject(),
		Data:    e.AppendJSON(nil),
		Header: nats.Header{
			nats.MsgIdHdr:        {e.EventID()},
			"ce-id":              {e.EventID()},
			"ce-type":            {e.Type()},
			"ce-source":          {"/client-api"},
			"ce-time":            {e.Message.CreatedAt.Format(chat.TimeFormat)},
			"ce-specversion":     {"1.0"},
			"ce-datacontenttype": {"application/json"},
		},
	}
}

// newMessage returns the company's message of all loads.
func newMessage() chat.Message {
	return chat.Message{
		ID:            uuid.Must(uuid.NewV7()).String(),
		CreatedAt:     time.Now().UTC(),
		Type:          chat.Text,
		Data:          json.RawMessage(messageData),
		NameOfSender:  "Support",
		IsFromSupport: true,
	}
}
