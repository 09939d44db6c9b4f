// Package chat holds the nouns of Parley and their rules: message, chat, conversation window, visitor, application,
// template, company and access token. It knows no technology: standard library only, no I/O.
//
// Read message.go first, then chat.go. Invariants:
//
//   - A message's data is JSON text and goes through every room byte for byte.
//   - A chat's status is derived from the times of what has happened to it (see [Chat.Status]), never stored, so that events
//     that arrive late or twice cannot spoil it.
//   - Times are UTC with milliseconds on the wire (see [TimeFormat]).
package chat
