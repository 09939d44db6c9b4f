// Package httpapi implements the HTTP conventions of Parley's APIs, so that handlers only decode, make one call and
// encode: the format of errors, decoding of bodies, logs and metrics, graceful shutdown.
//
// Read new.go first, then request.go (the middleware around every request) and errors.go (the one table from error to
// response). Invariants:
//
//   - Handlers return their error; it is answered, logged and counted in one place, once.
//   - Every error response has the same JSON body, also for unknown routes, wrong methods and panics.
//   - The text of an error that is not an [apperr.Error], or that is [apperr.Internal], never reaches a client.
//   - Neither queries nor headers nor bodies are logged: they hold credentials and personal data.
package httpapi
