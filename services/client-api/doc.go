// Package clientapi serves the Client API: company systems send messages into chats (POST /message/send),
// reach phone numbers through approved templates (POST /push-message), ask what became of a message (GET
// /message/:id), and look up their chats, messages and templates (GET /chats, /chats/:id/messages,
// /templates).
//
// It publishes CompanyMessageAccepted and PushAccepted on SENDS and consumes only invalidations of its cache.
// It answers 200 only after JetStream has acknowledged the event. Of messages it stores only the recipient's chat of a
// push, which the answer names; the processing layer does the rest. Beside them it stores idempotency records and when
// a token was last used.
//
// Reading order: service.go (the wiring), internal/http/routes.go (the whole API as one list), then
// internal/access (authentication), internal/message and internal/push (sending), internal/status (status of
// a message) and internal/lookup (chats, messages, templates). openapi.json is the contract; the tests
// compare every answer with it.
package clientapi
