// Package chat defines Parley's domain types and their rules: message, chat, conversation window, visitor, application,
// template, company and access token. It does no I/O.
//
// Read message.go first, then messagetype.go and chat.go. Invariants:
//
//   - A message's data is JSON text and is passed on byte for byte.
//   - A chat's status is derived from its times (see [Chat.Status]), never stored, so that late or duplicate
//     events cannot corrupt it.
//   - Times are UTC with milliseconds on the wire (see [TimeFormat]).
package chat
