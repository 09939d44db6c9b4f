// Command processing-layer answers every visitor with an echo.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type envelope struct { // parley.events.v1: VisitorMessageAccepted comes in, Reply goes out
	CompanyID  string         `json:"companyId"`
	AppID      string         `json:"appId"`
	ChatUserID string         `json:"chatUserId"`
	ChatID     string         `json:"chatId"`
	Message    map[string]any `json:"message"`
}

func main() {
	nc, err := nats.Connect(os.Getenv("NATS_URL"))
	check(err)
	js, err := jetstream.New(nc)
	check(err)
	ctx := context.Background()
	inbound, err := js.CreateOrUpdateConsumer(ctx, "INBOUND", jetstream.ConsumerConfig{
		Durable: "my-layer", FilterSubject: "*.chat.in.visitor.message.>", DeliverPolicy: jetstream.DeliverNewPolicy})
	check(err)
	messages, err := inbound.Messages()
	check(err)
	log.Print("answering visitors")
	for {
		msg, err := messages.Next()
		check(err)
		var e envelope
		check(json.Unmarshal(msg.Data(), &e))
		id := uuid.NewSHA1(uuid.NameSpaceOID, msg.Data()).String() // the same on a redelivery: one reply, not two
		data, _ := e.Message["data"].(map[string]any)
		text, ok := data["text"].(string)
		if !ok {
			text = "I got your file." // a file has no text, and a TEXT without text is refused
		}
		e.Message = map[string]any{"id": id, "createdAt": time.Now().UTC(), "type": "TEXT", "isFromSupport": true,
			"nameOfSender": "Echo", "data": map[string]any{"text": text}}
		reply, err := json.Marshal(e)
		check(err)
		_, err = js.Publish(ctx, "chat.reply."+e.AppID+"."+e.ChatUserID, reply, jetstream.WithMsgID(id))
		check(err)
		check(msg.Ack())
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
