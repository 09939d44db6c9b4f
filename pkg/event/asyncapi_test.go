package event_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	protoRoot    = "../../proto-events/proto"
	asyncAPIPath = "../../proto-events/asyncapi.yaml"
	eventsPage   = "../../docs/events.md"
)

// object keeps its members in the order in which they are written.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalYAML() (any, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, m := range o {
		var name, value yaml.Node
		name.SetString(m.name)
		if err := value.Encode(m.value); err != nil {
			return nil, err
		}
		node.Content = append(node.Content, &name, &value)
	}
	return node, nil
}

func ref(path string) object { return object{{"$ref", "#/" + path}} }

// flow lists the publishers and consumers of each event, which the .proto files do not specify.
var flow = map[string]struct {
	stream  string
	writers []string
	readers []string
}{
	"CompanyMessageAccepted": {subject.Sends, []string{"client-api"}, []string{"processor"}},
	"PushAccepted":           {subject.Sends, []string{"client-api"}, []string{"processor"}},
	"VisitorRegistered":      {subject.Inbound, []string{"widget-api"}, []string{"processor", "panel"}},
	"VisitorMessageAccepted": {subject.Inbound, []string{"widget-api"}, []string{"processor", "panel"}},
	"ChatRated":              {subject.Inbound, []string{"widget-api"}, []string{"processor", "panel"}},
	"ChatControlChanged":     {subject.Inbound, []string{"panel", "processor", "widget-api"}, []string{"processor", "panel"}},
	"Reply":                  {subject.Replies, []string{"processor", "panel"}, []string{"socket-gateway", "processor", "panel"}},
	"MessagePart":            {subject.Parts, []string{"processor"}, []string{"socket-gateway"}},
	"OutboundMessage":        {subject.Outbound, []string{"processor", "panel"}, []string{"a channel connector", "processor", "panel"}},
	"Typing":                 {"", []string{"socket-gateway", "panel", "processor"}, []string{"socket-gateway", "panel"}},
	"ReadCursorMoved":        {"", []string{"widget-api", "panel"}, []string{"socket-gateway", "panel"}},
	"MessageStatusChanged":   {subject.Status, []string{"socket-gateway", "widget-api", "a channel connector"}, []string{"processor"}},
}

// contract is the parsed .proto files with their comments.
type contract struct {
	messages []protoreflect.MessageDescriptor
}

func readContract(t *testing.T) contract {
	t.Helper()
	var names []string
	found, err := filepath.Glob(protoRoot + "/parley/events/v1/*.proto")
	if err != nil || len(found) == 0 {
		t.Fatalf("got %v and %v, want the .proto files", found, err)
	}
	for _, path := range found {
		names = append(names, "parley/events/v1/"+filepath.Base(path))
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{protoRoot}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	var c contract
	for _, f := range files {
		for i := range f.Messages().Len() {
			c.messages = append(c.messages, f.Messages().Get(i))
		}
	}
	return c
}

// comment returns the leading comment of a descriptor, with wrapped lines joined.
func comment(d protoreflect.Descriptor) string {
	text := d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments
	paragraphs := strings.Split(strings.ReplaceAll(strings.TrimSpace(text), "\n \n", "\n\n"), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

var subjectLine = regexp.MustCompile(`\s*Subject: (\S+)`)

// address returns the subject of an event's message in AsyncAPI's form, or "" if the message is only part of others.
func address(d protoreflect.MessageDescriptor) string {
	found := subjectLine.FindStringSubmatch(comment(d))
	if found == nil {
		return ""
	}
	return strings.NewReplacer("<", "{", ">", "}").Replace(found[1])
}

// description is a message's comment without its name and its subject.
func description(d protoreflect.MessageDescriptor) string {
	text := subjectLine.ReplaceAllString(comment(d), "")
	text = strings.TrimPrefix(text, string(d.Name())+": ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// schema returns a message's JSON mapping as a JSON Schema.
func schema(d protoreflect.MessageDescriptor) object {
	var properties object
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		o := kind(f)
		if text := comment(f); text != "" && o[0].name != "$ref" {
			o = append(o, member{"description", text})
		}
		properties = append(properties, member{f.JSONName(), o})
	}
	return object{{"type", "object"}, {"description", description(d)}, {"properties", properties}}
}

func kind(f protoreflect.FieldDescriptor) object {
	switch {
	case f.IsMap():
		return object{{"type", "object"}, {"additionalProperties", kind(f.MapValue())}}
	case f.Kind() == protoreflect.StringKind:
		return object{{"type", "string"}}
	case f.Kind() == protoreflect.BoolKind:
		return object{{"type", "boolean"}}
	case f.Kind() == protoreflect.Int32Kind:
		return object{{"type", "integer"}}
	case f.Kind() != protoreflect.MessageKind:
		panic("no JSON Schema for " + f.Kind().String())
	}
	switch f.Message().FullName() {
	case "google.protobuf.Timestamp":
		return object{{"type", "string"}, {"format", "date-time"}}
	case "google.protobuf.Struct":
		return object{{"type", "object"}}
	}
	return ref("components/schemas/" + string(f.Message().Name()))
}

// parameters returns the placeholders of an address.
func parameters(address string) []string {
	var names []string
	for _, found := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(address, -1) {
		names = append(names, found[1])
	}
	return names
}

// examples returns the events of a type in their wire format.
func examples(t *testing.T, typeName string) []object {
	t.Helper()
	var found []object
	for _, s := range samples() {
		if s.event.Type() != "parley.events.v1."+typeName {
			continue
		}
		var payload any
		if err := json.Unmarshal(s.event.AppendJSON(nil), &payload); err != nil {
			t.Fatal(err)
		}
		found = append(found, object{{"name", s.file}, {"payload", payload}})
	}
	for _, s := range signals() {
		if s.signal.Type() != "parley.events.v1."+typeName {
			continue
		}
		var payload any
		if err := json.Unmarshal(s.signal.AppendJSON(nil), &payload); err != nil {
			t.Fatal(err)
		}
		found = append(found, object{{"name", s.file}, {"payload", payload}})
	}
	return found
}

// asyncAPI builds the document.
func asyncAPI(t *testing.T, c contract) object {
	t.Helper()
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
			{"description", keptBy(flow[name].stream)},
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
		if flow[name].stream != "" {
			message = append(message, member{"headers", ref("components/schemas/EventHeaders")})
		}
		messages = append(messages, member{name, append(message, member{"payload", ref("components/schemas/" + name)}, member{"examples", examples(t, name)})})
		senders[name] = operation("send", name, flow[name].writers)
		receivers[name] = operation("receive", name, flow[name].readers)
	}
	var operations object
	for _, m := range channels {
		operations = append(operations, member{"publish" + m.name, senders[m.name]}, member{"consume" + m.name, receivers[m.name]})
	}
	channels, messages = append(channels, deadChannel()), append(messages, deadMessage())
	operations = append(operations, member{"publishDeadLetter", operation("send", "DeadLetter", []string{"processor", "socket-gateway"})},
		member{"consumeDeadLetter", operation("receive", "DeadLetter", []string{"parleyctl", "client-api"})})
	schemas = append(schemas, eventHeaders(), delivery(), deadHeaders())
	return object{
		{"asyncapi", "3.0.0"},
		{"info", object{
			{"title", "Parley events"}, {"version", "1.0.0"},
			{"license", object{{"name", "Apache-2.0"}}},
			{"description", "Events that Parley's services exchange over NATS, and send to visitors' browsers over Socket.IO.\n\n" +
				"Generated from proto-events/proto by `go test ./event -update` in pkg; do not edit. The payloads are the JSON mapping of these " +
				"messages: empty members may be omitted, and unknown members must be ignored."},
		}},
		{"defaultContentType", "application/json"},
		{"servers", object{
			{"nats", object{{"host", "nats:4222"}, {"protocol", "nats"}, {"description", "JetStream. Publish with Nats-Msg-Id, and wait for the acknowledgement."}}},
			{"widget", object{{"host", "widget.example.com"}, {"protocol", "socketio"}, {"pathname", "/socket.io/"}, {"description", "Socket.IO protocol 5 at {widget_base_url}/socket.io/."}}},
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
		{"summary", "A dead letter: the unchanged event that a consumer gave up, and the reason. `parleyctl dead` lists, shows and replays them."},
		{"headers", ref("components/schemas/DeadLetterHeaders")},
		{"payload", object{{"description", "The event, of any type; empty if it was too large to be stored with these headers."}}},
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
		{bus.HeaderDeadTruncated, "true: the payload was too large to be stored with these headers."},
	} {
		properties = append(properties, member{h.name, object{{"type", "string"}, {"description", h.description}}})
	}
	return member{"DeadLetterHeaders", object{{"type", "object"}, {"properties", properties}}}
}

// delivery describes the payload of the socket event: the record and the id of its chat.
func delivery() member {
	return member{"Delivery", object{
		{"description", "The message record, with its chat."},
		{"allOf", []object{ref("components/schemas/Message"), {
			{"type", "object"},
			{"properties", object{{"chatId", object{{"type", "string"}}}}},
			{"required", []string{"id", "createdAt", "type", "data", "nameOfSender", "isFromSupport", "chatId"}},
		}}},
	}}
}

func socketChannel() member {
	return member{"visitorSocket", object{
		{"address", "/message"},
		{"description", "The visitor's namespace; auth.token in the CONNECT packet identifies the visitor. Each event of the channel is a Socket.IO event of the same name."},
		{"servers", []object{ref("servers/widget")}},
		{"messages", object{
			{"message", ref("components/messages/message")},
			{"message.part", ref("components/messages/message.part")},
			{"token", ref("components/messages/token")},
			{"token_expiring", ref("components/messages/token_expiring")},
			{"typing", ref("components/messages/typing")},
			{"read", ref("components/messages/read")},
			{"unread", ref("components/messages/unread")},
		}},
	}}
}

func socketOperations() object {
	one := func(action, summary, message string) object {
		return object{
			{"action", action}, {"channel", ref("channels/visitorSocket")}, {"summary", summary},
			{"messages", []object{ref("channels/visitorSocket/messages/" + message)}},
		}
	}
	renewal := one("receive", "A fresh token of the same visitor renews the session in place.", "token")
	renewal = append(renewal, member{"reply", object{
		{"channel", ref("channels/visitorSocket")},
	}})
	return object{
		{"deliverMessage", one("send", "A reply reaches every socket of the visitor once, in the order of the stream.", "message")},
		{"deliverPart", one("send", "A part of a message that a bot is still writing. A socket that connects in the meantime gets the text so far as one part.", "message.part")},
		{"warnOfExpiry", one("send", "A minute before the socket's token expires.", "token_expiring")},
		{"renewToken", renewal},
		{"showTyping", one("send", "The other side is typing: shown for six seconds, or until its next message. Never replayed.", "typing")},
		{"sayTyping", one("receive", "The visitor is typing. At most one event in two seconds is processed; acknowledged with {ok: true} or {ok: false, code, message}.", "typing")},
		{"showRead", one("send", "A read cursor moved: the company's, or the visitor's on another device. Never replayed.", "read")},
		{"sayRead", one("receive", "The visitor has read everything up to a message; acknowledged with {ok: true, unread} once stored, else {ok: false, code, message}.", "read")},
		{"tellUnread", one("send", "After connecting, if auth.unread was true.", "unread")},
	}
}

func socketMessages() object {
	return object{
		{"message", object{
			{"name", "message"}, {"summary", "A message for the visitor. The last argument, which clients store by themselves, is the offset for connection state recovery."},
			{"payload", ref("components/schemas/Delivery")},
		}},
		{"message.part", object{
			{"name", "message.part"}, {"summary", "A part of a message that a bot is still writing, without the members companyId, appId and chatUserId. It carries no offset for connection state recovery."},
			{"payload", ref("components/schemas/MessagePart")},
		}},
		{"token", object{
			{"name", "token"}, {"summary", "The token; acknowledged with {ok: true} or {ok: false, code, message}."},
			{"payload", object{{"type", "string"}, {"description", "A visitor token, as POST /register returns it."}}},
		}},
		{"typing", object{
			{"name", "typing"}, {"summary", "Typing indicator. A visitor sends it without arguments."},
			{"payload", object{{"type", "object"}, {"properties", object{
				{"name", object{{"type", "string"}, {"description", "Name of the writer; may be absent."}}},
				{"at", object{{"type", "string"}, {"format", "date-time"}, {"description", "Ignore the event unless this is later than the newest message of the other side."}}},
			}}}},
		}},
		{"read", object{
			{"name", "read"}, {"summary", "A read cursor. A visitor sends messageId alone."},
			{"payload", object{{"type", "object"}, {"properties", object{
				{"chatId", object{{"type", "string"}}},
				{"side", object{{"type", "string"}, {"enum", []string{subject.SideVisitor, subject.SideSupport}}}},
				{"messageId", object{{"type", "string"}, {"description", "The newest message read; may be absent if side is support."}}},
				{"upTo", object{{"type", "string"}, {"format", "date-time"}, {"description", "Messages created up to then are read."}}},
			}}}},
		}},
		{"unread", object{
			{"name", "unread"}, {"summary", "Unread count and read cursors of the chat."},
			{"payload", object{{"type", "object"}, {"properties", object{
				{"unread", object{{"type", "integer"}, {"description", "Messages of the other side after the visitor's cursor, at most 100."}}},
				{"readUpTo", object{{"type", "string"}, {"description", "The visitor's cursor: id of a message."}}},
				{"seenUpTo", object{{"type", "string"}, {"format", "date-time"}, {"description", "The company has read the visitor's messages up to this time."}}},
			}}}},
		}},
		{"token_expiring", object{
			{"name", "token_expiring"}, {"summary", "The socket will be disconnected when its token expires."},
			{"payload", object{{"type", "null"}}},
		}},
	}
}

// page builds docs/events.md.
func page(c contract) []byte {
	var b bytes.Buffer
	b.WriteString("# Events\n\nEvents on NATS, generated from the contracts in `proto-events/proto` by `go test ./event -update` in pkg; do not edit.\n" +
		"As an AsyncAPI 3 document, including Socket.IO events: [proto-events/asyncapi.yaml](../proto-events/asyncapi.yaml).\n" +
		"Each event in its wire format: [proto-events/examples](../proto-events/examples).\n\n" +
		"Every event carries its id as `Nats-Msg-Id` and `ce-id`, its type as `ce-type`, and `ce-source`, `ce-time`, `traceparent`. Empty members\n" +
		"may be omitted; unknown members must be ignored.\n\n" +
		"INBOUND, REPLIES and PARTS are divided into partitions: they store a message under its subject with the partition in front, so a consumer of the\n" +
		"stream receives `7.chat.reply.{appId}.{chatUserId}` and filters with `*.chat.reply.>` (all) or `7.chat.reply.>` (one). Publishers, and subscribers\n" +
		"without JetStream, use the subjects of this page ([why](decisions/0004-delivery.md)).\n\n| event | subject | stream | published by | consumed by |\n|---|---|---|---|---|\n")
	for _, d := range c.messages {
		if at := address(d); at != "" {
			f := flow[string(d.Name())]
			fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s | %s | %s |\n", d.Name(), strings.ToLower(string(d.Name())), at, cmp.Or(f.stream, "none: core NATS"),
				strings.Join(f.writers, ", "), strings.Join(f.readers, ", "))
		}
	}
	fmt.Fprintf(&b, "| any, with `Parley-Dead-*` headers | `chat.dead.{stream}.{consumer}` | %s | processor, socket-gateway | parleyctl, client-api |\n", subject.Dead)
	for _, d := range c.messages {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| member | type | |\n|---|---|---|\n", d.Name(), description(d))
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.JSONName(), typeName(f), strings.ReplaceAll(comment(f), "\n\n", " "))
		}
	}
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

// TestAsyncAPIIsCurrent compares the AsyncAPI document and docs/events.md with the contracts.
func TestAsyncAPIIsCurrent(t *testing.T) {
	t.Parallel()
	c := readContract(t)
	var document bytes.Buffer
	encoder := yaml.NewEncoder(&document)
	encoder.SetIndent(2)
	if err := encoder.Encode(asyncAPI(t, c)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{asyncAPIPath: document.Bytes(), eventsPage: page(c)} {
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not current (write it with go test ./event -update): %v", path, err)
		}
	}
}

// Every published event is in the document, with its subject and all its members.
func TestAsyncAPIListsEveryEvent(t *testing.T) {
	t.Parallel()
	c := readContract(t)
	addresses := make(map[string]string)
	for _, d := range c.messages {
		addresses["parley.events.v1."+string(d.Name())] = address(d)
	}
	streams := make(map[string]string)
	for _, s := range subject.Streams() {
		for _, filter := range s.Subjects {
			streams[strings.TrimSuffix(filter, ">")] = s.Name
		}
	}
	for _, s := range samples() {
		at := addresses[s.event.Type()]
		pattern := regexp.MustCompile("^" + regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(at), `[^.]+`) + "$")
		if !pattern.MatchString(s.event.Subject()) {
			t.Errorf("%s is published on %s, its contract has %s", s.event.Type(), s.event.Subject(), at)
		}
		name := strings.TrimPrefix(s.event.Type(), "parley.events.v1.")
		if flow[name].stream != s.stream {
			t.Errorf("%s: got stream %s, want %s", name, flow[name].stream, s.stream)
		}
		if who := strings.TrimPrefix(s.source, "/"); !slices.Contains(flow[name].writers, who) && !strings.HasSuffix(who, "-connector") {
			t.Errorf("%s is published by %s, which the document does not list", name, who)
		}
	}
}
