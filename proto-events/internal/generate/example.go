// The examples of proto-events/examples, which the tests of pkg/event write from what a plain NATS client receives.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// example is an event as published over NATS. Events that no stream stores have no headers.
type example struct {
	Subject string            `json:"subject"`
	Headers map[string]string `json:"headers"`
	Payload any               `json:"payload"`
}

// readExamples returns the examples by the name of their message. It reports examples that contradict the contract,
// and events of the contract without an example.
func readExamples(c contract) (map[string][]object, error) {
	paths, err := filepath.Glob(examplesDir + "/*.json")
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(paths))
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".json"))
	}
	slices.Sort(names) // without the extension: "reply" stands before "reply-with-receipt"
	found := make(map[string][]object)
	for _, name := range names {
		e, err := readExample(name)
		if err != nil {
			return nil, err
		}
		d := c.messageAt(e.Subject)
		if d == nil {
			return nil, fmt.Errorf("%s: no event of the contract has the subject %s", name, e.Subject)
		}
		if err := checkExample(d, e); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		message := string(d.Name())
		found[message] = append(found[message], object{{"name", name}, {"payload", e.Payload}})
	}
	for _, d := range c.messages {
		if address(d) != "" && found[string(d.Name())] == nil {
			return nil, fmt.Errorf("%s has no example", d.Name())
		}
	}
	return found, nil
}

func readExample(name string) (e example, err error) {
	text, err := os.ReadFile(filepath.Join(examplesDir, name+".json"))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("%s: %w", name, err)
	}
	return e, nil
}

// messageAt returns the message that is published on a subject, or nil.
func (c contract) messageAt(subj string) protoreflect.MessageDescriptor {
	for _, d := range c.messages {
		at := address(d)
		if at == "" {
			continue
		}
		pattern := placeholder.ReplaceAllString(regexp.QuoteMeta(at), `[^.]+`)
		if regexp.MustCompile("^" + pattern + "$").MatchString(subj) {
			return d
		}
	}
	return nil
}

// placeholder matches a placeholder of a quoted address.
var placeholder = regexp.MustCompile(`\\\{\w+\\\}`)

// checkExample reports an example whose type or publisher the contract does not have.
func checkExample(d protoreflect.MessageDescriptor, e example) error {
	if streamOf(d) == "" {
		return nil
	}
	if kind := e.Headers["ce-type"]; kind != string(d.FullName()) {
		return fmt.Errorf("%s has the type %s, want %s", e.Subject, kind, d.FullName())
	}
	source := strings.TrimPrefix(e.Headers["ce-source"], "/")
	if !slices.Contains(publishers(d), source) && !strings.HasSuffix(source, "-connector") {
		return fmt.Errorf("%s is published by %s, which is not one of its publishers %v", d.Name(), source, publishers(d))
	}
	return nil
}
