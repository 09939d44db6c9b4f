// One event of every type, with every member set: the examples of the document, and the types of its schemas.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/webhook"
)

// sample is an event with its description in the contract.
type sample struct {
	schema, summary string
	event           webhook.Event
}

const (
	companyID  = "c0000000-0000-4000-8000-000000000001"
	appID      = "a0000000-0000-4000-8000-000000000001"
	chatID     = "5bbf5571-1b97-5d0f-9588-ec2e97f7f647"
	chatUserID = "7d1c6a52-0f5e-4b1f-8f0e-3c8f7a2d9e11"
	messageID  = "019ab5c6-0d0e-7c64-a0bb-0d5d5fa7c1f2"
	endpointID = "019ab5c6-0d0e-7c64-a0bb-0d5d5fa7c1f3"
)

// at is the time of the samples.
var at = chat.Time(time.Date(2026, 11, 21, 12, 0, 0, int(7*time.Millisecond), time.UTC))

func received(t chat.MessageType, data string) webhook.MessageReceived {
	return webhook.MessageReceived{
		CompanyID: companyID, AppID: appID, ChatID: chatID, ChatUserID: chatUserID,
		Message: webhook.MessageOf(chat.Message{
			ID:           messageID,
			CreatedAt:    time.Time(at),
			Type:         t,
			Data:         json.RawMessage(data),
			NameOfSender: "Ada Lovelace",
		}),
	}
}

// of returns a sample event.
func of(t string, data any) webhook.Event { return webhook.Event{Type: t, Timestamp: at, Data: data} }

// samples returns one event of each type, with every member set.
func samples() []sample {
	const file = `{"url":"https://chat.example.com/files/ZrJ0","mime":"image/png","size":48213,"fileName":"receipt.png"}`
	visitor := webhook.Visitor{
		CompanyID: companyID, AppID: appID, ChatID: chatID, ChatUserID: chatUserID, VerifiedBy: "email",
		Profile: webhook.Profile{
			FirstName: "Ada",
			LastName:  "Lovelace",
			Email:     "ada@example.com",
			Phone:     "491701234567",
			UserID:    "crm-1042",
		},
	}
	return []sample{
		{
			schema:  "MessageReceived",
			summary: "A visitor wrote.",
			event:   of(webhook.TypeMessageReceived, received(chat.Text, `{"text":"Where is my order?"}`)),
		},
		{
			schema: "FileReceived",
			summary: "A visitor sent a file; it accompanies message.received for the same message. " +
				"The file is at data.message.data.url.",
			event: of(webhook.TypeFileReceived, webhook.FileReceived(received(chat.Image, file))),
		},
		{
			schema:  "MessageStatus",
			summary: "A message of the company was delivered, was read, or failed.",
			event: of(webhook.TypeMessageStatus, webhook.MessageStatus{
				CompanyID: companyID, ChatID: chatID, MessageID: messageID,
				Status: chat.StatusFailed, OccurredAt: at, Reason: "The number is not reachable",
			}),
		},
		{
			schema:  "ChatOpened",
			summary: "A visitor's chat was opened, by the registration or by the first message.",
			event: of(webhook.TypeChatOpened, webhook.ChatOpened{
				CompanyID: companyID, AppID: appID, ChatID: chatID, ChatUserID: chatUserID, OpenedAt: at,
			}),
		},
		{
			schema:  "ChatClosed",
			summary: "An agent or an operator closed a chat.",
			event: of(webhook.TypeChatClosed, webhook.ChatClosed{
				CompanyID: companyID, AppID: appID, ChatID: chatID, ChatUserID: chatUserID,
				ClosedAt: at, ByUserID: "1f3a6a52-0f5e-4b1f-8f0e-3c8f7a2d9e11",
			}),
		},
		{
			schema:  "ChatRated",
			summary: "A visitor rated a closed chat, or changed the rating; the latest one counts.",
			event: of(webhook.TypeChatRated, webhook.ChatRated{
				CompanyID: companyID, AppID: appID, ChatID: chatID, ChatUserID: chatUserID,
				Score: 4, Comment: "Quick and friendly.", RatedAt: at,
			}),
		},
		{
			schema:  "Visitor",
			summary: "A visitor registered for the first time.",
			event:   of(webhook.TypeVisitorRegistered, visitor),
		},
		{
			schema:  "Visitor",
			summary: "A known visitor registered again; profile is the updated one.",
			event:   of(webhook.TypeVisitorUpdated, visitor),
		},
		{
			schema:  "EndpointDisabled",
			summary: "Another endpoint of the company was disabled: it kept failing, or responded 410.",
			event: of(webhook.TypeEndpointDisabled, webhook.EndpointDisabled{
				CompanyID: companyID, EndpointID: endpointID, URL: "https://crm.example/parley",
				Reason: webhook.DisabledFailing, DisabledAt: at,
			}),
		},
		{
			schema:  "Test",
			summary: "A test event sent on request.",
			event:   of(webhook.TypeTest, webhook.Test{CompanyID: companyID, EndpointID: endpointID}),
		},
	}
}

// checkSamples reports a type without a sample, and a member that no sample sets: an example would hide a missing one.
func checkSamples() error {
	seen := map[string]bool{}
	for _, s := range samples() {
		seen[s.event.Type] = true
		body, err := s.event.Body()
		if err != nil {
			return err
		}
		var sent struct{ Data object }
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			return err
		}
		for name := range schemaOf(reflect.TypeOf(s.event.Data))["properties"].(object) {
			if _, there := sent.Data[name]; !there {
				return fmt.Errorf("%s: the sample has no %s", s.event.Type, name)
			}
		}
	}
	for _, name := range append(webhook.Types(), webhook.TypeTest) {
		if !seen[name] {
			return fmt.Errorf("%s has no sample", name)
		}
	}
	return nil
}
