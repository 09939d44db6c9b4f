// Package widgetapi serves the Widget API, the backend of the web chat widget: its settings, visitors'
// registration, their history and chats, what they write, upload and rate, the uploaded files, and the public
// keys of their tokens. internal/http/routes.go lists its routes.
//
// It publishes VisitorRegistered, VisitorMessageAccepted, ChatRated and handovers on INBOUND and read reports on STATUS,
// reads REPLIES for histories, and consumes only invalidations of its cache. Replies reach visitors through the socket
// gateway. It answers a success
// only after JetStream has acknowledged the event; a retry completes what was written to the store before.
//
// Reading order: service.go (the wiring), internal/http/routes.go (the whole API as one list), then
// internal/application (applications and their origins), internal/registration (visitors),
// internal/conversation (messages) and pkg/attachment (files). openapi.json is the contract; the tests
// compare every answer with it.
package widgetapi
