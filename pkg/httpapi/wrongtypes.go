package httpapi

import (
	"bytes"
	"encoding"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-chat/parley/pkg/apperr"
)

// maxDetails bounds an error body: a hundred wrong elements of an array add nothing over the first few.
const maxDetails = 50

// wrongTypes decodes body, which is valid JSON, into dst field by field and returns the fields with a wrong type. It
// sets all others, so that they can be validated too. It runs only for requests that are rejected anyway.
func wrongTypes(body []byte, dst any) apperr.Fields {
	var w typeWalk
	w.value("", reflect.ValueOf(dst).Elem(), body)
	return w.fields
}

type typeWalk struct{ fields apperr.Fields }

func (w *typeWalk) value(path string, v reflect.Value, raw jsontext.Value) {
	switch {
	case len(w.fields) >= maxDetails, raw.Kind() == 'n':
		return
	case decodesItself(v):
		w.leaf(path, v, raw)
	case v.Kind() == reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		w.value(path, fresh.Elem(), raw)
		v.Set(fresh)
	case v.Kind() == reflect.Struct && raw.Kind() == '{':
		w.members(path, v, raw)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8 && raw.Kind() == '[':
		w.elements(path, v, raw)
	default:
		w.leaf(path, v, raw)
	}
}

func (w *typeWalk) members(path string, v reflect.Value, raw jsontext.Value) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil {
		w.fields.Add(path, "must be an object")
		return
	}
	for field, fv := range v.Fields() {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() || name == "-":
		case option == "embed": // accepts members that match no other field, of any type
		case field.Anonymous && name == "":
			w.value(path, fv, raw)
		default:
			if name == "" {
				name = field.Name
			}
			if member, ok := members[name]; ok {
				w.value(join(path, name), fv, member)
			}
		}
	}
}

func (w *typeWalk) elements(path string, v reflect.Value, raw jsontext.Value) {
	var elements []jsontext.Value
	if err := json.Unmarshal(raw, &elements); err != nil {
		w.fields.Add(path, "must be an array")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	for i, element := range elements {
		w.value(path+"["+strconv.Itoa(i)+"]", v.Index(i), element)
	}
}

func (w *typeWalk) leaf(path string, v reflect.Value, raw jsontext.Value) {
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		v.SetZero()
		w.fields.Add(path, expectation(v, raw))
	}
}

func decodesItself(v reflect.Value) bool {
	switch v.Addr().Interface().(type) {
	case json.Unmarshaler, json.UnmarshalerFrom, encoding.TextUnmarshaler:
		return true
	}
	return false
}

func expectation(v reflect.Value, raw jsontext.Value) string {
	if _, ok := v.Addr().Interface().(*Object); ok {
		return "must be an object"
	}
	if decodesItself(v) {
		return "is invalid"
	}
	switch v.Kind() {
	case reflect.String:
		return "must be a string"
	case reflect.Bool:
		return "must be a boolean"
	case reflect.Slice, reflect.Array:
		return "must be an array"
	case reflect.Struct, reflect.Map:
		return "must be an object"
	case reflect.Float32, reflect.Float64:
		return "must be a number"
	}
	if raw.Kind() == '0' && !bytes.ContainsAny(raw, ".eE") {
		return "is out of range"
	}
	return "must be an integer"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Object is a JSON object exactly as sent. It is empty if the field is absent or null.
type Object []byte

// UnmarshalJSON implements the Unmarshaler of both encoding/json and go-json-experiment/json.
func (o *Object) UnmarshalJSON(raw []byte) error {
	switch {
	case string(raw) == "null":
		*o = nil
		return nil
	case len(raw) == 0 || raw[0] != '{':
		return &json.SemanticError{GoType: reflect.TypeFor[Object]()}
	}
	*o = append((*o)[:0], raw...)
	return nil
}

// MarshalJSON implements the Marshaler of both encoding/json and go-json-experiment/json.
func (o Object) MarshalJSON() ([]byte, error) {
	if len(o) == 0 {
		return []byte("null"), nil
	}
	return o, nil
}
