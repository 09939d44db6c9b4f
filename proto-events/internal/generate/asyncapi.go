// The AsyncAPI document: its channels, messages, schemas and operations on NATS. socket.go has those of Socket.IO.
package main

import (
	"strings"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

// asyncAPI builds the document.
func asyncAPI(c contract, examples map[string][]object) object {
	var channels, messages, schemas object
	senders, receivers := map[string]object{}, map[string]object{}
	for _, d := range c.messages {
		name := string(d.Name())
		schemas = append(schemas, member{name, schema(d)})
		at := address(d)
		if at == "" {
			continue
		}
		var params object
		for _, p := range parameters(at) {
			params = append(params, member{p, object{{"description", "One token: an id, or a lower-case word."}}})
		}
		channels = append(channels, member{name, object{
			{"address", at},
			{"description", keptBy(streamOf(d))},
			{"servers", []object{ref("servers/nats")}},
			{"messages", object{{name, ref("components/messages/" + name)}}},
			{"parameters", params},
		}})
		message := object{
			{"name", "parley.events.v1." + name},
			{"title", name},
			{"summary", description(d)},
			{"contentType", "application/json"},
		}
		if streamOf(d) != "" {
			message = append(message, member{"headers", ref("components/schemas/EventHeaders")})
		}
		message = append(message,
			member{"payload", ref("components/schemas/" + name)},
			member{"examples", examples[name]})
		messages = append(messages, member{name, message})
		senders[name] = operation("send", name, publishers(d))
		receivers[name] = operation("receive", name, consumers(d))
	}
	var operations object
	for _, m := range channels {
		operations = append(operations,
			member{"publish" + m.name, senders[m.name]},
			member{"consume" + m.name, receivers[m.name]})
	}
	channels = append(channels, deadChannel(), lostTailChannel())
	messages = append(messages, deadMessage(), lostTailMessage())
	operations = append(operations,
		member{"publishDeadLetter", operation("send", "DeadLetter", []string{"processor", "socket-gateway"})},
		member{"consumeDeadLetter", operation("receive", "DeadLetter", []string{"parleyctl", "client-api"})},
		member{"publishLostTail", operation("send", "LostTail", lostTailUsers)},
		member{"consumeLostTail", operation("receive", "LostTail", lostTailUsers)})
	schemas = append(schemas, eventHeaders(), delivery(), deadHeaders(), lostTailSchema())
	return object{
		{"asyncapi", "3.0.0"},
		{"info", object{
			{"title", "Parley events"}, {"version", "1.0.0"},
			{"license", object{{"name", "Apache-2.0"}}},
			{"description", "Events that Parley's services exchange over NATS, and send to visitors' browsers " +
				"over Socket.IO.\n\n" +
				"Generated from proto-events/proto by `make generate`; do not edit. The payloads are the JSON " +
				"mapping of these " +
				"messages: empty members may be omitted, and unknown members must be ignored."},
		}},
		{"defaultContentType", "application/json"},
		{"servers", object{
			{
				"nats",
				object{
					{"host", "nats:4222"},
					{"protocol", "nats"},
					{"description", "JetStream. Publish with Nats-Msg-Id, and wait for the acknowledgement."},
				},
			},
			{
				"widget",
				object{
					{"host", "widget.example.com"},
					{"protocol", "socketio"},
					{"pathname", "/socket.io/"},
					{"description", "Socket.IO protocol 5 at {widget_base_url}/socket.io/."},
				},
			},
		}},
		{"channels", append(channels, socketChannel())},
		{"operations", append(operations, socketOperations()...)},
		{"components", object{{"messages", append(messages, socketMessages()...)}, {"schemas", schemas}}},
	}
}

// keptBy describes the stream that stores a channel's messages.
func keptBy(stream string) string {
	if stream == "" {
		return "Core NATS: not stored in a stream."
	}
	return "Stored in the stream " + stream + "."
}

func operation(action, name string, who []string) object {
	verb := map[string]string{"send": "Published by ", "receive": "Consumed by "}[action]
	return object{
		{"action", action},
		{"channel", ref("channels/" + name)},
		{"summary", verb + strings.Join(who, ", ") + "."},
		{"messages", []object{ref("channels/" + name + "/messages/" + name)}},
	}
}

// eventHeaders describes the headers of every event: CloudEvents 1.0 attributes, JetStream's id and W3C's trace
// context.
func eventHeaders() member {
	text := func(name, description string) member {
		return member{name, object{{"type", "string"}, {"description", description}}}
	}
	return member{"EventHeaders", object{
		{"type", "object"},
		{"properties", object{
			text("Nats-Msg-Id", "The event's id: JetStream discards a second publication with the same id."),
			text("ce-specversion", "1.0"),
			text("ce-id", "The event's id."),
			text("ce-type", "The full name of the payload's message."),
			text("ce-source", "/ and the name of the service that published it."),
			text("ce-time", "The time of the event."),
			text("ce-datacontenttype", "application/json"),
			text("traceparent", "W3C trace context."),
		}},
		{"required", []string{"Nats-Msg-Id", "ce-specversion", "ce-id", "ce-type", "ce-source", "ce-time"}},
	}}
}

// deadChannel, deadMessage and deadHeaders describe dead letters: any event that a consumer gave up, with the reason in
// headers.
func deadChannel() member {
	return member{"DeadLetter", object{
		{"address", "chat.dead.{stream}.{consumer}"},
		{"description", "Stored in the stream " + subject.Dead + "."},
		{"servers", []object{ref("servers/nats")}},
		{"messages", object{{"DeadLetter", ref("components/messages/DeadLetter")}}},
		{"parameters", object{
			{"stream", object{{"description", "The stream of the event."}}},
			{"consumer", object{{"description", "The consumer that gave up."}}},
		}},
	}}
}

func deadMessage() member {
	return member{"DeadLetter", object{
		{"name", "DeadLetter"}, {"title", "DeadLetter"},
		{
			"summary",
			"A dead letter: the unchanged event that a consumer gave up, and the reason. `parleyctl dead` " +
				"lists, shows and replays them.",
		},
		{"headers", ref("components/schemas/DeadLetterHeaders")},
		{
			"payload",
			object{
				{"description", "The event, of any type; empty if it was too large to be stored with these headers."},
			},
		},
	}}
}

func deadHeaders() member {
	var properties object
	for _, h := range []struct{ name, description string }{
		{bus.HeaderDeadStream, "The stream of the event."},
		{bus.HeaderDeadConsumer, "The consumer that gave up."},
		{bus.HeaderDeadSubject, "The event's subject."},
		{bus.HeaderDeadSequence, "The event's sequence in its stream."},
		{bus.HeaderDeadAttempts, "Number of delivery attempts."},
		{bus.HeaderDeadReason, "The error's code, a colon, and the error's text."},
		{bus.HeaderDeadMessage, "The public part of the reason, for the company of the event."},
		{bus.HeaderDeadTime, "When the consumer gave up."},
		{bus.HeaderDeadMessageID, "The event's Nats-Msg-Id."},
		{bus.HeaderDeadSender, "The company that sent the message; absent if no company did."},
		{bus.HeaderDeadTruncated, "true: the payload was too large to be stored with these headers."},
	} {
		properties = append(properties, member{h.name, object{{"type", "string"}, {"description", h.description}}})
	}
	return member{"DeadLetterHeaders", object{{"type", "object"}, {"properties", properties}}}
}
