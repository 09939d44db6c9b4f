// Package httpapi holds the HTTP conventions of Parley's APIs, so that a service's handlers only decode, make one call and
// encode: what an error looks like, how a body is read, what is logged and measured, how a server stops.
//
// Read new.go first, then request.go (what happens around every request) and errors.go (the one table from error to
// answer). Invariants:
//
//   - Handlers return their error; it is answered, logged and counted in one place, once.
//   - Every error that leaves the server has the same JSON body, also for unknown routes, wrong methods and panics.
//   - The text of an error that is not an [apperr.Error], or that is [apperr.Internal], never reaches a client.
//   - Neither queries nor headers nor bodies are logged: they hold credentials and personal data.
package httpapi
