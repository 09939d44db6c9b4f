// The page docs/events.md: every event with its subject, stream and members.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/parley-chat/parley/proto-events/subject"
)

// page builds docs/events.md.
func page(c contract) []byte {
	var b bytes.Buffer
	b.WriteString("# Events\n\nEvents on NATS, generated from the contracts in `proto-events/proto` by `make " +
		"generate`; do not edit.\n" +
		"As an AsyncAPI 3 document, including Socket.IO events: " +
		"[proto-events/asyncapi.yaml](../proto-events/asyncapi.yaml).\n" +
		"Each event in its wire format: [proto-events/examples](../proto-events/examples).\n\n" +
		"Every event carries its id as `Nats-Msg-Id` and `ce-id`, its type as `ce-type`, and `ce-source`, " +
		"`ce-time`, `traceparent`. Empty members\n" +
		"may be omitted; unknown members must be ignored.\n\n" +
		"INBOUND, SENDS, REPLIES and PARTS are divided into partitions: they store a message under its subject with " +
		"the partition in front, so a consumer of the\n" +
		"stream receives `7.chat.reply.{appId}.{chatUserId}` and filters with `*.chat.reply.>` (all) or " +
		"`7.chat.reply.>` (one). Publishers, and subscribers\n" +
		"without JetStream, use the subjects of this page ([why](decisions/0004-delivery.md)).\n\n| event | " +
		"subject | stream | published by | consumed by |\n|---|---|---|---|---|\n")
	for _, d := range c.messages {
		if at := address(d); at != "" {
			anchor := strings.ToLower(string(d.Name()))
			stream := cmp.Or(streamOf(d), "none: core NATS")
			fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s | %s | %s |\n", d.Name(), anchor, at, stream,
				strings.Join(publishers(d), ", "), strings.Join(consumers(d), ", "))
		}
	}
	fmt.Fprintf(&b, "| any, with `Parley-Dead-*` headers | `chat.dead.{stream}.{consumer}` | %s | processor, "+
		"socket-gateway | parleyctl, panel, processor |\n", subject.Dead)
	b.WriteString(lostTailRow())
	for _, d := range c.messages {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", d.Name(), description(d))
		b.WriteString("| member | type | |\n|---|---|---|\n")
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			text := strings.ReplaceAll(comment(f), "\n\n", " ")
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.JSONName(), typeName(f), text)
		}
	}
	b.Write(lostTailSection())
	return b.Bytes()
}

func typeName(f protoreflect.FieldDescriptor) string {
	switch o := kind(f); {
	case o[0].name == "$ref":
		return "[" + string(f.Message().Name()) + "](#" + strings.ToLower(string(f.Message().Name())) + ")"
	case len(o) > 1 && o[1].name == "format":
		return "time"
	case f.IsMap():
		return "object of strings"
	default:
		return o[0].value.(string)
	}
}
