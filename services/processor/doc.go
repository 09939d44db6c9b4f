// Package processor is the reference processing layer. It can be replaced by another program that reads the
// streams INBOUND and SENDS and writes the streams REPLIES and OUTBOUND.
//
// It consists of four durable consumers, each with its own switch:
//
//   - recorder reads INBOUND (visitor messages), REPLIES and OUTBOUND and writes the history, also of replies
//     by other programs; it reads STATUS and DEAD and writes the status of companies' messages.
//   - dispatcher reads SENDS (company messages and pushes) and publishes Reply or OutboundMessage.
//   - bot reads INBOUND (visitor messages) and publishes Reply.
//   - webhooks reads INBOUND and STATUS, and delivers events to the endpoints of companies (docs/webhooks.md).
//
// Read routes.go first: it lists all consumers. service.go wires them; internal/ has a package for each.
//
// Events may be delivered twice. The id of a published event is derived from the event that was read, so the
// streams drop duplicates, and the history appends a message only once.
package processor
