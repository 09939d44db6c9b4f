// Package panel serves the web panel of companies and operators: its app at /, and the API that the app uses
// below /api/.
//
// It changes the store through pkg/admin, as parleyctl does, reads streams through pkg/inspect, publishes
// agents' messages on REPLIES or OUTBOUND and changes of a chat's control on INBOUND, and follows these
// streams for connected browsers (server-sent events).
//
// Reading order: service.go (the wiring), internal/http/routes.go (all endpoints with their permissions),
// then internal/signin (sessions), internal/live (server-sent events), internal/web (the app's files).
// openapi.json is the contract; the tests compare every answer with it.
//
// Invariants: every answer is scoped to the user's company on the server; another company's resources are not
// found; a request without the permission is refused before anything is read; a GET changes nothing.
package panel
