package httpapitest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// Readable returns the readability faults of an OpenAPI document at /docs, sorted: a field, a parameter or a
// header without a description, and an optional parameter with an example, which the page would fill in and
// send.
func Readable(t testing.TB, openapi []byte) (faults []string) {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(openapi, &document); err != nil {
		t.Fatalf("reading the OpenAPI document: %v", err)
	}
	r := reader{document: document}
	r.walk("", document)
	slices.Sort(r.faults)
	return r.faults
}

type reader struct {
	document map[string]any
	faults   []string
}

func (r *reader) walk(path string, value any) {
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			r.walk(fmt.Sprintf("%s/%d", path, i), element)
		}
	case map[string]any:
		if properties, ok := value["properties"].(map[string]any); ok {
			r.describe(path, properties)
			for name, schema := range properties { // the names in a map, such as headers, do not describe the values
				r.walk(path+"/properties/"+name, schema)
			}
		}
		if headers, ok := value["headers"].(map[string]any); ok {
			r.describe(path, headers)
		}
		if in, ok := value["in"].(string); ok && in != "" {
			r.parameter(path, value)
		}
		for name, member := range value {
			if name != "example" && name != "examples" && name != "properties" {
				r.walk(path+"/"+name, member)
			}
		}
	}
}

func (r *reader) describe(path string, members map[string]any) {
	for name, member := range members {
		if !r.described(member) {
			r.faults = append(r.faults, path+"/"+name+" has no description")
		}
	}
}

func (r *reader) parameter(path string, p map[string]any) {
	if !r.described(p) {
		r.faults = append(r.faults, fmt.Sprintf("%s: the parameter %v has no description", path, p["name"]))
	}
	if p["required"] != true && p["type"] == nil && (p["example"] != nil || p["examples"] != nil) {
		r.faults = append(r.faults, fmt.Sprintf("%s: the optional parameter %v has an example, which /docs fills in", path, p["name"]))
	}
}

// described follows references: a description at the definition counts.
func (r *reader) described(value any) bool {
	member, _ := value.(map[string]any)
	if text, _ := member["description"].(string); text != "" {
		return true
	}
	reference, ok := member["$ref"].(string)
	return ok && r.described(r.resolve(reference))
}

func (r *reader) resolve(reference string) any {
	var at any = r.document
	for name := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
		members, _ := at.(map[string]any)
		at = members[name]
	}
	return at
}

var forExample = regexp.MustCompile("For example `([^`]+)`")

// ExampleOf returns a parameter's example: that of the document, or, for an optional one, the value after "For example" in its
// description. Empty: it has none.
func ExampleOf(p *openapi3.Parameter) string {
	if p.Example != nil {
		return fmt.Sprint(p.Example)
	}
	if found := forExample.FindStringSubmatch(p.Description); found != nil {
		return found[1]
	}
	return ""
}
