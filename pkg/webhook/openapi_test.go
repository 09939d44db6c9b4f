package webhook_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/webhook"
)

var update = flag.Bool("update", false, "write docs/webhooks.openapi.json")

const contractPath = "../../docs/webhooks.openapi.json"

type object = map[string]any

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
		Message: webhook.MessageOf(chat.Message{ID: messageID, CreatedAt: time.Time(at), Type: t, Data: json.RawMessage(data), NameOfSender: "Ada Lovelace"}),
	}
}

// samples returns one event of each type, with every member set.
func samples() []sample {
	visitor := webhook.Visitor{
		CompanyID: companyID, AppID: appID, ChatID: chatID, ChatUserID: chatUserID, VerifiedBy: "email",
		Profile: webhook.Profile{FirstName: "Ada", LastName: "Lovelace", Email: "ada@example.com", Phone: "491701234567", UserID: "crm-1042"},
	}
	of := func(t string, data any) webhook.Event { return webhook.Event{Type: t, Timestamp: at, Data: data} }
	return []sample{
		{"MessageReceived", "A visitor wrote.", of(webhook.TypeMessageReceived, received(chat.Text, `{"text":"Where is my order?"}`))},
		{"FileReceived", "A visitor sent a file; it accompanies message.received for the same message. The file is at data.message.data.url.", of(webhook.TypeFileReceived,
			webhook.FileReceived(received(chat.Image, `{"url":"https://chat.example.com/files/ZrJ0","mime":"image/png","size":48213,"fileName":"receipt.png"}`)))},
		{"MessageStatus", "A message of the company was delivered, was read, or failed.", of(webhook.TypeMessageStatus, webhook.MessageStatus{
			CompanyID: companyID, ChatID: chatID, MessageID: messageID, Status: chat.StatusFailed, OccurredAt: at, Reason: "The number is not reachable",
		})},
		{"ChatOpened", "A visitor's chat was opened, by the registration or by the first message.", of(webhook.TypeChatOpened, webhook.ChatOpened{
			CompanyID: companyID, AppID: appID, ChatID: chatID, ChatUserID: chatUserID, OpenedAt: at,
		})},
		{"ChatClosed", "An agent or an operator closed a chat.", of(webhook.TypeChatClosed, webhook.ChatClosed{
			CompanyID: companyID, AppID: appID, ChatID: chatID, ChatUserID: chatUserID, ClosedAt: at, ByUserID: "1f3a6a52-0f5e-4b1f-8f0e-3c8f7a2d9e11",
		})},
		{"ChatRated", "A visitor rated a closed chat, or changed the rating; the latest one counts.", of(webhook.TypeChatRated, webhook.ChatRated{
			CompanyID: companyID, AppID: appID, ChatID: chatID, ChatUserID: chatUserID, Score: 4, Comment: "Quick and friendly.", RatedAt: at,
		})},
		{"Visitor", "A visitor registered for the first time.", of(webhook.TypeVisitorRegistered, visitor)},
		{"Visitor", "A known visitor registered again; profile is the updated one.", of(webhook.TypeVisitorUpdated, visitor)},
		{"EndpointDisabled", "Another endpoint of the company was disabled: it kept failing, or responded 410.", of(webhook.TypeEndpointDisabled, webhook.EndpointDisabled{
			CompanyID: companyID, EndpointID: endpointID, URL: "https://crm.example/parley", Reason: webhook.DisabledFailing, DisabledAt: at,
		})},
		{"Test", "A test event sent on request.", of(webhook.TypeTest, webhook.Test{CompanyID: companyID, EndpointID: endpointID})},
	}
}

// schemaOf returns the JSON Schema of a type's encoding.
func schemaOf(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[chat.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{"type": "object"}
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Int:
		return object{"type": "integer"}
	case t.Kind() == reflect.String:
		return object{"type": "string"}
	}
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		properties[name] = schemaOf(f.Type)
		if options == "" {
			required = append(required, name)
		}
	}
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func header(name, description, example string) object {
	return object{"name": name, "in": "header", "required": true, "description": description, "schema": object{"type": "string"}, "example": example}
}

// contract is the OpenAPI document of all webhooks.
func contract(t *testing.T) []byte {
	t.Helper()
	webhooks, schemas := object{}, object{}
	for _, s := range samples() {
		schemas[s.schema] = schemaOf(reflect.TypeOf(s.event.Data))
		body, err := s.event.Body()
		if err != nil {
			t.Fatal(err)
		}
		webhooks[s.event.Type] = object{"post": object{
			"operationId": s.event.Type, "summary": s.summary,
			"parameters": []object{
				header("webhook-id", "Identifies the event at this endpoint; the same for retries and replays.", "3b1f6a52-0f5e-5b1f-8f0e-3c8f7a2d9e11"),
				header("webhook-timestamp", "Time of this attempt, in seconds since 1970.", "1795262400"),
				header("webhook-signature", "Signatures, separated by spaces: v1 (HMAC-SHA256) and v1a (ed25519).", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
			},
			"requestBody": object{"required": true, "content": object{"application/json": object{
				"schema": object{
					"type": "object", "required": []string{"type", "timestamp", "data"},
					"properties": object{
						"type": object{"const": s.event.Type}, "timestamp": object{"type": "string", "format": "date-time"},
						"data": object{"$ref": "#/components/schemas/" + s.schema},
					},
				},
				"example": json.RawMessage(body),
			}}},
			"responses": object{
				"2XX":     object{"description": "Received. Any other status is a failed attempt, which is retried."},
				"410":     object{"description": "The endpoint no longer exists: it is disabled immediately."},
				"429":     object{"description": "Too many requests: concurrency is reduced, and no request is sent before Retry-After."},
				"default": object{"description": "A failed attempt."},
			},
		}}
	}
	document := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Parley webhooks", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Requests that Parley sends to the webhook endpoints of a company, as Standard Webhooks (https://www.standardwebhooks.com).",
		},
		"webhooks": webhooks, "components": object{"schemas": schemas},
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The contract is generated from the payload types.
func TestContractIsCurrent(t *testing.T) {
	t.Parallel()
	want := contract(t)
	if *update {
		if err := os.WriteFile(contractPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(contractPath)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/webhooks.openapi.json is stale (%v): go test ./webhook -update", err)
	}
	document, err := openapi3.NewLoader().LoadFromData(want)
	if err == nil {
		err = document.Validate(t.Context()) // including the examples
	}
	if err != nil {
		t.Errorf("docs/webhooks.openapi.json is not valid: %v", err)
	}
}

// Every subscribable type is in the contract, and every sample sets all members: an example would hide a missing one.
func TestSamplesAreComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range samples() {
		seen[s.event.Type] = true
		body, err := s.event.Body()
		if err != nil {
			t.Fatal(err)
		}
		var sent struct{ Data object }
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			t.Fatal(err)
		}
		for name := range schemaOf(reflect.TypeOf(s.event.Data))["properties"].(object) {
			if _, there := sent.Data[name]; !there {
				t.Errorf("%s: the sample has no %s", s.event.Type, name)
			}
		}
	}
	for _, name := range append(webhook.Types(), webhook.TypeTest) {
		if !seen[name] {
			t.Errorf("the contract has no %s", name)
		}
	}
}
