// Package widgetapi serves the Widget API, the backend of the web chat widget: its settings (GET
// /settings/:id), visitors' registration (POST /register), the history of their open chat (GET /message),
// what they write or upload (POST /message), the uploaded files (GET /files/:id/:name), and the public keys
// of their tokens (GET /.well-known/jwks.json).
//
// It publishes VisitorRegistered, VisitorMessageAccepted, ChatRated and handovers on INBOUND and consumes
// only invalidations of its cache. Replies reach visitors through the socket gateway. It answers a success
// only after JetStream has acknowledged the event; a retry completes what was written to the store before.
//
// Reading order: service.go (the wiring), internal/http/routes.go (the whole API as one list), then
// internal/application (applications and their origins), internal/registration (visitors),
// internal/conversation (messages) and pkg/attachment (files). openapi.json is the contract; the tests
// compare every answer with it.
package widgetapi
