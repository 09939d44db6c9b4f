package event_test

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"

	eventsv1 "github.com/parley-chat/parley/proto-events/gen/parley/events/v1"
)

const (
	companyID  = "4b7f2c1e-9d3a-4c55-8e21-0a6f5d9c3b10"
	appID      = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	chatID     = "9c1f0f54-5f35-4d6a-9a53-6a8b1a2a7c11"
	chatUserID = "2d1e6f80-33c4-4a57-b9a8-5f0c7e4d2b96"
	templateID = "f3b1a2c4-6d5e-4f70-8a9b-1c2d3e4f5a6b"
	userID     = "1f3a6e0b-7d1c-5e42-9d55-3c6a8f0b1e27"
	messageID  = "0198f3a0-7b1c-7e42-9d55-3c6a8f0b1e27"
)

// sample is an event in both forms: ours, and the type generated from its contract.
type sample struct {
	file   string // of its example
	event  event.Event
	into   func([]byte) (event.Event, error) // decodes our form from JSON
	proto  func() proto.Message              // an empty message of the generated type
	filter string                            // the kind's subjects
	stream string
	source string // the service that publishes it
}

func read[E event.Event](payload []byte) (event.Event, error) {
	var e E
	err := json.Unmarshal(payload, &e)
	return e, err
}

func at(clock string) time.Time {
	t, err := time.Parse(chat.TimeFormat, "2026-03-14T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

func message(t chat.MessageType, data, sender string, support bool) chat.Message {
	return chat.Message{
		ID: messageID, CreatedAt: at("15:09:26.535"), Type: t, Data: json.RawMessage(data),
		NameOfSender: sender, IsFromSupport: support,
	}
}

// samples returns one event of every type. TestEveryTypeOfTheContractHasASample compares the list with the contract.
func samples() []sample {
	return []sample{
		{
			file: "company-message-accepted", stream: subject.Sends, filter: subject.AllCompanyMessages, source: "/client-api",
			event: event.CompanyMessageAccepted{
				CompanyID: companyID, ChatID: chatID,
				Message: message(chat.Text, `{"text":"Your order 4711 is on its way."}`, "Acme", true),
			},
			into:  read[event.CompanyMessageAccepted],
			proto: func() proto.Message { return new(eventsv1.CompanyMessageAccepted) },
		},
		{
			file: "push-accepted", stream: subject.Sends, filter: subject.AllPushes, source: "/client-api",
			event: event.PushAccepted{
				CompanyID: companyID, TemplateID: templateID, MessageID: messageID, CreatedAt: at("15:09:26.535"),
				Source: "+4915112345678", Username: "Ada Lovelace", Parameters: map[string]string{"order": "4711", "day": "Monday <am>"},
			},
			into:  read[event.PushAccepted],
			proto: func() proto.Message { return new(eventsv1.PushAccepted) },
		},
		{
			file: "visitor-registered", stream: subject.Inbound, filter: subject.AllRegistrations, source: "/widget-api",
			event: event.VisitorRegistered{
				ID: "0198f39f-2c40-7d01-8b6e-94d2a7c3e510", CompanyID: companyID, AppID: appID, ChatUserID: chatUserID,
				ChatID: chatID, ChatOpened: true, RegisteredAt: at("15:08:00.000"),
				Profile:    event.VisitorProfile{FirstName: "Ada", LastName: "Lovelace", Email: "ada@example.com"},
				VerifiedBy: "email", VisitorCreated: true,
			},
			into:  read[event.VisitorRegistered],
			proto: func() proto.Message { return new(eventsv1.VisitorRegistered) },
		},
		{
			file: "visitor-message-accepted", stream: subject.Inbound, filter: subject.AllVisitorMessages, source: "/widget-api",
			event: event.VisitorMessageAccepted{
				CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, ChatID: chatID,
				Message: message(chat.MultipleChoiceReply, `{"text":"Show me a picture","payload":"IMAGE"}`, "Ada Lovelace", false),
				Site:    event.SiteGroup("192.0.2.1"),
			},
			into:  read[event.VisitorMessageAccepted],
			proto: func() proto.Message { return new(eventsv1.VisitorMessageAccepted) },
		},
		{
			file: "chat-rated", stream: subject.Inbound, filter: subject.AllRatings, source: "/widget-api",
			event: event.ChatRated{
				CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, ChatID: chatID, Score: 4, Comment: "Quick and friendly.",
				RatedAt: at("15:12:00.000"),
			},
			into:  read[event.ChatRated],
			proto: func() proto.Message { return new(eventsv1.ChatRated) },
		},
		{
			file: "chat-control-changed", stream: subject.Inbound, filter: subject.AllControls, source: "/panel",
			event: event.ChatControlChanged{
				ID: messageID, CompanyID: companyID, ChatID: chatID, AppID: appID, ChatUserID: chatUserID, Control: event.ControlAgent,
				AssigneeID: userID, ByUserID: userID, ChangedAt: at("15:09:26.535"),
			},
			into:  read[event.ChatControlChanged],
			proto: func() proto.Message { return new(eventsv1.ChatControlChanged) },
		},
		{
			file: "chat-handed-over", stream: subject.Inbound, filter: subject.AllControls, source: "/processor",
			event: event.ChatControlChanged{
				ID: messageID, CompanyID: companyID, ChatID: chatID, AppID: appID, ChatUserID: chatUserID, Control: event.ControlAgent,
				ChangedAt: at("15:09:26.535"),
				Handover:  event.Handover{By: chat.ByBot, Reason: "refund", Note: "Order 4711, paid twice.", At: at("15:09:26.535")},
			},
			into:  read[event.ChatControlChanged],
			proto: func() proto.Message { return new(eventsv1.ChatControlChanged) },
		},
		{
			file: "reply", stream: subject.Replies, filter: subject.AllReplies, source: "/processor",
			event: event.Reply{
				CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, ChatID: chatID,
				Message: message(chat.MultipleChoice,
					`{"text":"What would you like to see?","choices":[{"title":"A picture","payload":"IMAGE"},`+
						`{"title":"Some cards","payload":"CAROUSEL"}]}`, "Parley", true),
			},
			into:  read[event.Reply],
			proto: func() proto.Message { return new(eventsv1.Reply) },
		},
		{
			file: "reply-with-receipt", stream: subject.Replies, filter: subject.AllReplies, source: "/processor",
			event: event.Reply{
				CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, ChatID: chatID, Receipt: true,
				Message: message(chat.Text, `{"text":"Your order 4711 is on its way."}`, "Parley", true),
			},
			into:  read[event.Reply],
			proto: func() proto.Message { return new(eventsv1.Reply) },
		},
		{
			file: "message-part", stream: subject.Parts, filter: subject.AllParts, source: "/processor",
			event: event.MessagePart{
				CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, ChatID: chatID, MessageID: messageID,
				N: 3, Offset: 17, Text: "is on its way. ", CreatedAt: at("15:09:26.535"),
			},
			into:  read[event.MessagePart],
			proto: func() proto.Message { return new(eventsv1.MessagePart) },
		},
		{
			file: "message-part-whole", stream: subject.Parts, filter: subject.AllParts, source: "/processor",
			event: event.MessagePart{
				CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, ChatID: chatID, MessageID: messageID,
				Text: "Your order **4711** ", CreatedAt: at("15:09:26.535"), NameOfSender: "Parley",
				Format: chat.Markdown,
			},
			into:  read[event.MessagePart],
			proto: func() proto.Message { return new(eventsv1.MessagePart) },
		},
		{
			file: "message-part-done", stream: subject.Parts, filter: subject.AllParts, source: "/processor",
			event: event.MessagePart{
				CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, ChatID: chatID, MessageID: messageID,
				N: 4, Offset: 32, CreatedAt: at("15:09:26.535"), Done: true,
			},
			into:  read[event.MessagePart],
			proto: func() proto.Message { return new(eventsv1.MessagePart) },
		},
		{
			file: "message-status-delivered", stream: subject.Status, filter: subject.AllStatuses, source: "/socket-gateway",
			event: event.MessageStatusChanged{
				CompanyID: companyID, MessageID: messageID, Status: chat.StatusDelivered, At: at("15:09:26.702"), ChatID: chatID,
			},
			into:  read[event.MessageStatusChanged],
			proto: func() proto.Message { return new(eventsv1.MessageStatusChanged) },
		},
		{
			file: "message-status-failed", stream: subject.Status, filter: subject.AllStatuses, source: "/sms-connector",
			event: event.MessageStatusChanged{
				CompanyID: companyID, MessageID: messageID, Status: chat.StatusFailed, At: at("15:09:31.000"),
				Reason: "The number is not in service.",
			},
			into:  read[event.MessageStatusChanged],
			proto: func() proto.Message { return new(eventsv1.MessageStatusChanged) },
		},
		{
			file: "outbound-message", stream: subject.Outbound, filter: subject.AllOutbound, source: "/processor",
			event: event.OutboundMessage{
				CompanyID: companyID, Channel: chat.ChannelPhone, ChatID: chatID, ChatUserID: chatUserID,
				Recipient: event.Recipient{Phone: "+4915112345678", Name: "Ada Lovelace"},
				Message: message(chat.Template, `{"templateId":"`+templateID+`","name":"order_update",`+
					`"text":"Hello Ada Lovelace, your order has news.","parameters":{"username":"Ada Lovelace"}}`, "Acme", true),
			},
			into:  read[event.OutboundMessage],
			proto: func() proto.Message { return new(eventsv1.OutboundMessage) },
		},
	}
}
