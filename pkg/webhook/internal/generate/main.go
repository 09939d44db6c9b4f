// Command generate writes docs/webhooks.openapi.json from the payload types of pkg/webhook. `make generate` runs it in
// the root of the repository.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/parley-chat/parley/pkg/chat"
)

const contractPath = "docs/webhooks.openapi.json"

type object = map[string]any

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if err := checkSamples(); err != nil {
		return err
	}
	text, err := contract()
	if err != nil {
		return err
	}
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	if err := document.Validate(ctx); err != nil { // including the examples
		return fmt.Errorf("validating the document: %w", err)
	}
	return os.WriteFile(contractPath, text, 0o644)
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
	return object{
		"name": name, "in": "header", "required": true, "description": description,
		"schema": object{"type": "string"}, "example": example,
	}
}

// contract is the OpenAPI document of all webhooks.
func contract() ([]byte, error) {
	webhooks, schemas := object{}, object{}
	for _, s := range samples() {
		schemas[s.schema] = schemaOf(reflect.TypeOf(s.event.Data))
		body, err := s.event.Body()
		if err != nil {
			return nil, err
		}
		webhooks[s.event.Type] = object{"post": object{
			"operationId": s.event.Type, "summary": s.summary,
			"parameters": []object{
				header("webhook-id", "Identifies the event at this endpoint; the same for retries and replays.",
					"3b1f6a52-0f5e-5b1f-8f0e-3c8f7a2d9e11"),
				header("webhook-timestamp", "Time of this attempt, in seconds since 1970.", "1795262400"),
				header("webhook-signature", "Signatures, separated by spaces: v1 (HMAC-SHA256) and v1a (ed25519).",
					"v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
			},
			"requestBody": object{"required": true, "content": object{"application/json": object{
				"schema": object{
					"type": "object", "required": []string{"type", "timestamp", "data"},
					"properties": object{
						"type":      object{"const": s.event.Type},
						"timestamp": object{"type": "string", "format": "date-time"},
						"data":      object{"$ref": "#/components/schemas/" + s.schema},
					},
				},
				"example": json.RawMessage(body),
			}}},
			"responses": object{
				"2XX": object{"description": "Received. Any other status is a failed attempt, which is retried."},
				"410": object{"description": "The endpoint no longer exists: it is disabled immediately."},
				"429": object{"description": "Too many requests: concurrency is reduced, and no request is " +
					"sent before Retry-After."},
				"default": object{"description": "A failed attempt."},
			},
		}}
	}
	document := object{
		"openapi": "3.1.0",
		"info": object{
			"title":   "Parley webhooks",
			"version": "1",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Requests that Parley sends to the webhook endpoints of a company, as Standard " +
				"Webhooks (https://www.standardwebhooks.com).",
		},
		"webhooks": webhooks, "components": object{"schemas": schemas},
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
