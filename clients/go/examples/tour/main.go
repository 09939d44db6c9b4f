// Command tour runs the example of the README with the Go client: a visitor registers and writes, and the company looks
// the chat up, answers and reads the answer's status. It reads .parley/demo.json.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	parley "github.com/parley-chat/parley/clients/go"
	"github.com/parley-chat/parley/clients/go/clientapi"
	"github.com/parley-chat/parley/clients/go/widgetapi"
)

type demo struct {
	AppID         string `json:"appId"`
	WidgetBaseURL string `json:"widgetBaseUrl"`
	ClientBaseURL string `json:"clientBaseUrl"`
	AccessToken   string `json:"accessToken"`
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: tour .parley/demo.json")
	}
	var d demo
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err == nil {
		err = tour(context.Background(), d)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func tour(ctx context.Context, d demo) error {
	anonymous, err := parley.NewWidget(d.WidgetBaseURL, "")
	if err != nil {
		return err
	}
	email := "grace@example.com"
	registered, err := anonymous.RegisterWithResponse(
		ctx,
		nil,
		widgetapi.Registration{AppId: d.AppID, FirstName: new("Grace"), Email: new(email)},
	)
	if err != nil {
		return err
	}
	visitor, err := parley.NewWidget(d.WidgetBaseURL, registered.JSON200.AccessToken)
	if err != nil {
		return err
	}
	var question widgetapi.SendMessageJSONRequestBody
	if err := question.FromSendText(widgetapi.SendText{Data: widgetapi.TextData{Text: "Where is my order?"}}); err != nil {
		return err
	}
	if _, err := visitor.SendMessageWithResponse(ctx, nil, question); err != nil {
		return err
	}

	company, err := parley.NewClient(d.ClientBaseURL, d.AccessToken)
	if err != nil {
		return err
	}
	chats := parley.All(func(page clientapi.RequestEditorFn) (http.Header, *[]clientapi.Chat, error) {
		answer, err := company.ListChatsWithResponse(ctx, &clientapi.ListChatsParams{Email: new(email)}, page)
		if err != nil {
			return nil, nil, err
		}
		return answer.HTTPResponse.Header, answer.JSON200, nil
	})
	for chat, err := range chats {
		if err != nil {
			return err
		}
		var body clientapi.SendMessageJSONRequestBody
		if err := body.FromSendText(clientapi.SendText{ChatId: chat.ChatId, Data: clientapi.TextData{Text: "It is on its way."}}); err != nil {
			return err
		}
		answer, err := company.SendMessageWithResponse(ctx, nil, body)
		if err != nil {
			return err
		}
		sent, err := answer.JSON200.AsMessageSent()
		if err != nil {
			return err
		}
		status, err := company.GetMessageWithResponse(ctx, sent.MessageId, nil)
		if err != nil {
			return err
		}
		fmt.Printf(
			"Go client: message %s into the chat of %s is %s\n", sent.MessageId, *chat.Visitor.FirstName,
			status.JSON200.Status,
		)
	}
	return nil
}
