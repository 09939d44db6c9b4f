// Package clientapi serves the Client API: company systems send messages into chats (POST /message/send), reach phone numbers
// through approved templates (POST /push-message), ask what became of a message (GET /message/:id), and look up their chats, messages
// and templates (GET /chats, /chats/:id/messages, /templates).
//
// It publishes CompanyMessageAccepted and PushAccepted on SENDS and consumes nothing but invalidations of what it has cached.
// It answers 200 only after JetStream has acknowledged the event, and writes nothing but the recipient's
// chat of a push, which its answer names: the rest the processing layer does.
//
// Reading order: service.go (the wiring), internal/http/routes.go (the whole API as one list), then internal/access (who is
// calling), internal/message and internal/push (what is done), internal/status (what came of it), internal/record (what is
// looked up). openapi.json is the contract; the tests hold every answer against it.
package clientapi
