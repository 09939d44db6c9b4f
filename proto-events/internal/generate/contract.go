// What the .proto files say of an event: its members and comments, its subject, its publishers and its consumers.
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
			d := f.Messages().Get(i)
			if said := facts(d); len(said) != 0 && len(said) != 3 {
				return contract{}, fmt.Errorf("%s: got the facts %v, want Subject, Publishers and Consumers", d.Name(), said)
			}
			c.messages = append(c.messages, d)
		}
	}
	return c, nil
}

// comment returns the leading comment of a descriptor without its facts, with wrapped lines joined.
func comment(d protoreflect.Descriptor) string {
	text := fact.ReplaceAllString(leading(d), "")
	paragraphs := strings.Split(strings.ReplaceAll(strings.TrimSpace(text), "\n \n", "\n\n"), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

func leading(d protoreflect.Descriptor) string {
	return d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments
}

// fact is a line of an event's comment that the documents show at a place of its own.
var fact = regexp.MustCompile(`(?m)^ (Subject|Publishers|Consumers): (.+)\n`)

// facts returns the facts of a message by their name. A message that is only part of others has none.
func facts(d protoreflect.MessageDescriptor) map[string]string {
	found := map[string]string{}
	for _, line := range fact.FindAllStringSubmatch(leading(d), -1) {
		found[line[1]] = line[2]
	}
	return found
}

// address returns the subject of an event's message in AsyncAPI's form, or "" if the message is only part of others.
func address(d protoreflect.MessageDescriptor) string {
	return strings.NewReplacer("<", "{", ">", "}").Replace(facts(d)["Subject"])
}

// streamOf returns the stream that stores an event, or "" for one of core NATS.
func streamOf(d protoreflect.MessageDescriptor) string { return subject.StreamOf(address(d)) }

// publishers and consumers return the services that publish and consume an event.
func publishers(d protoreflect.MessageDescriptor) []string {
	return strings.Split(facts(d)["Publishers"], ", ")
}
func consumers(d protoreflect.MessageDescriptor) []string {
	return strings.Split(facts(d)["Consumers"], ", ")
}

// description is a message's comment without its name.
func description(d protoreflect.MessageDescriptor) string {
	text := strings.TrimPrefix(comment(d), string(d.Name())+": ")
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
