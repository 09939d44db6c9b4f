// Package processor is the reference processing layer behind Parley's edge, and may be replaced by another one that reads
// the streams INBOUND and SENDS and writes the streams REPLIES and OUTBOUND.
//
// It is four durable consumers that are switched on and off one by one:
//
//   - recorder reads INBOUND (visitor messages), REPLIES and OUTBOUND, and keeps the history, whoever replies; it reads STATUS and
//     DEAD, and keeps what became of the messages that companies sent.
//   - dispatcher reads SENDS (company messages and pushes) and publishes Reply or OutboundMessage.
//   - bot reads INBOUND (visitor messages) and publishes Reply.
//   - webhooks reads INBOUND and STATUS, and delivers events to the endpoints of companies (docs/webhooks.md).
//
// Read routes.go first: it is the whole of what is consumed. service.go wires it; internal/ holds a folder for each.
//
// Everything may be delivered twice: what is published carries an id that is derived from what was read, so the streams
// drop the second, and the history appends a message only once.
package processor
