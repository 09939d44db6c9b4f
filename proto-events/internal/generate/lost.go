package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/parley-chat/parley/proto-events/subject"
)

// The record of a lost tail is no event: a bus writes it as JSON (pkg/bus/lost_tail.go), so no .proto file has it.

const lostTailSummary = "The record of the last messages that a stream had acknowledged and has lost. It begins a " +
	"new epoch of the stream, which uses their sequences again: positions, offsets and cursors of an earlier epoch " +
	"are void."

// lostTailUsers write the record when they notice a loss, and read it.
var lostTailUsers = []string{"client-api", "widget-api", "processor", "panel", "socket-gateway", "parleyctl"}

// lostTailMembers are the members of bus.LostTail.
var lostTailMembers = []struct{ name, kind, description string }{
	{"stream", "string", "The stream."},
	{"from", "integer", "The first lost sequence."},
	{"to", "integer", "The last lost sequence that is known; the stream may have lost more."},
	{"noticed", "time", "When the loss was noticed: the epoch that begins with the record."},
	{"previous", "time", "The epoch that the loss ended. An offset of it is valid below `from`."},
}

// lostTailRow is the row of docs/events.md.
func lostTailRow() string {
	users := strings.Join(lostTailUsers, ", ")
	return fmt.Sprintf(
		"| [LostTail](#losttail), a record and no event | `%s` | %s | %s | %s |\n",
		subject.LostTail("{stream}"), subject.Positions, users, users,
	)
}

// lostTailSection is the section of docs/events.md.
func lostTailSection() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n## LostTail\n\n%s\n\n| member | type | |\n|---|---|---|\n", lostTailSummary)
	for _, m := range lostTailMembers {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.name, m.kind, m.description)
	}
	return b.Bytes()
}

func lostTailChannel() member {
	return member{"LostTail", object{
		{"address", subject.LostTail("{stream}")},
		{"description", "The last message of the subject is stored in " + subject.Positions + "."},
		{"servers", []object{ref("servers/nats")}},
		{"messages", object{{"LostTail", ref("components/messages/LostTail")}}},
		{"parameters", object{{"stream", object{{"description", "The stream that has lost messages."}}}}},
	}}
}

func lostTailMessage() member {
	return member{"LostTail", object{
		{"name", "LostTail"},
		{"title", "LostTail"},
		{"summary", lostTailSummary},
		{"payload", ref("components/schemas/LostTail")},
	}}
}

func lostTailSchema() member {
	var properties object
	for _, m := range lostTailMembers {
		kind := object{{"type", m.kind}}
		if m.kind == "time" {
			kind = object{{"type", "string"}, {"format", "date-time"}}
		}
		properties = append(properties, member{m.name, append(kind, member{"description", m.description})})
	}
	return member{"LostTail", object{{"type", "object"}, {"properties", properties}}}
}
