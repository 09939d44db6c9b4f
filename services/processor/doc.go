// Package processor is the reference processing layer. It can be replaced by another program that reads the
// streams INBOUND and SENDS and writes the streams REPLIES and OUTBOUND.
//
// It consists of five parts. All but the last have their own consumers and their own switch:
//
//   - recorder (RECORDER) reads INBOUND (visitor messages, changes of control, ratings), REPLIES and OUTBOUND and
//     writes the history, also of replies by other programs. It reads STATUS and DEAD and writes the status of
//     companies' messages. It publishes Reply for a notice to the visitor, such as that agents have the chat.
//   - dispatcher (DISPATCHER) reads SENDS (company messages and pushes) and publishes Reply or OutboundMessage.
//   - bot (BOT) reads INBOUND (visitor messages). It publishes Reply, MessagePart while an answer is streamed,
//     ChatControlChanged when it hands a chat to the agents, and announces Typing over core NATS. Servers and language
//     models, of applications (docs/bots.md) or of the operator, answer over HTTP.
//   - webhooks (WEBHOOKS) reads INBOUND and STATUS, and posts events to the endpoints of companies over HTTP
//     (docs/webhooks.md). It publishes nothing.
//   - fetch reads no events. It fetches the documents of companies that are due from their addresses
//     (docs/knowledge.md), and writes their texts and passages.
//
// Read routes.go first: it lists all consumers. service.go wires them; internal/ has a package for each.
//
// Events may be delivered twice. The id of a published event is derived from the event that was read, so the
// streams drop duplicates, and the history appends a message only once.
package processor
