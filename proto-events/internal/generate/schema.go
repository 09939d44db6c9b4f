// JSON Schemas of the messages, in YAML whose members keep their order.
package main

import (
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
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
