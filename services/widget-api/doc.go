// Package widgetapi serves the Widget API, the backend of the web chat widget: its settings (GET /settings/:id), visitors'
// registration (POST /register), the history of their open chat (GET /message), what they write or upload (POST /message), the
// uploaded files (GET /files/:id/:name), and the public keys of their tokens (GET /.well-known/jwks.json).
//
// It publishes VisitorRegistered, VisitorMessageAccepted, ChatRated and handovers on INBOUND and consumes nothing but invalidations of
// what it has cached. Replies reach visitors through the socket gateway. A success is answered only after JetStream has acknowledged the
// event; what is written to MongoDB before that is written so that a retry completes it.
//
// Reading order: service.go (the wiring), internal/http/routes.go (the whole API as one list), then internal/application (whom
// a widget belongs to), internal/registration (who is writing), internal/conversation (what is written) and internal/attachment
// (the files). openapi.json is the contract; the tests hold every answer against it.
package widgetapi
