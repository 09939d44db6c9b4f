// What the .proto files say of an event, and who publishes and consumes it, which they do not say.
package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/parley-chat/parley/proto-events/subject"
)

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
	"ChatControlChanged": {
		subject.Inbound, []string{"panel", "processor", "widget-api"}, []string{"processor", "panel"},
	},
	"Reply": {
		subject.Replies, []string{"processor", "panel"}, []string{"socket-gateway", "processor", "panel"},
	},
	"MessagePart": {subject.Parts, []string{"processor"}, []string{"socket-gateway"}},
	"OutboundMessage": {
		subject.Outbound,
		[]string{"processor", "panel"},
		[]string{"a channel connector", "processor", "panel"},
	},
	"Typing": {
		"", []string{"socket-gateway", "panel", "processor"}, []string{"socket-gateway", "panel"},
	},
	"ReadCursorMoved": {"", []string{"widget-api", "panel"}, []string{"socket-gateway", "panel"}},
	"MessageStatusChanged": {
		subject.Status,
		[]string{"socket-gateway", "widget-api", "a channel connector"},
		[]string{"processor"},
	},
}

// contract is the parsed .proto files with their comments.
type contract struct {
	messages []protoreflect.MessageDescriptor
}

func readContract(ctx context.Context) (contract, error) {
	var names []string
	found, err := filepath.Glob(protoRoot + "/parley/events/v1/*.proto")
	if err != nil || len(found) == 0 {
		return contract{}, fmt.Errorf("looking for .proto files: got %v and %w", found, err)
	}
	for _, path := range found {
		names = append(names, "parley/events/v1/"+filepath.Base(path))
	}
	sources := &protocompile.SourceResolver{ImportPaths: []string{protoRoot}}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(sources),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return contract{}, fmt.Errorf("parsing the .proto files: %w", err)
	}
	var c contract
	for _, f := range files {
		for i := range f.Messages().Len() {
			c.messages = append(c.messages, f.Messages().Get(i))
		}
	}
	return c, nil
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

// parameters returns the placeholders of an address.
func parameters(address string) []string {
	var names []string
	for _, found := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(address, -1) {
		names = append(names, found[1])
	}
	return names
}
