// Package panel serves the web panel of companies and operators: its app at /, and the API that the app uses below /api/.
//
// It changes the store through pkg/admin, as parleyctl does, reads streams through pkg/inspect, publishes agents' messages on REPLIES or
// OUTBOUND and who answers a chat on INBOUND, and follows these streams for the browsers that are connected (server-sent events).
//
// Reading order: service.go (the wiring), internal/http/routes.go (the whole API as one list, with the permission of each route), then
// internal/signin (who is calling), internal/inbox (chats), internal/live (server-sent events), internal/web (the app's files).
// openapi.json is the contract; the tests compare every answer with it.
//
// Invariants: every answer is scoped to the user's company on the server; what is another company's is not found; a request without
// the permission is refused before anything is read; a GET changes nothing.
package panel
