package httpapi

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-chat/parley/pkg/apperr"
)

// abbreviations are short forms that are not the first words of a name (see [shortForms]), with the name.
var abbreviations = map[string]string{"params": "parameters"}

// meant returns the known name that name stands for: it differs only in case, underscores and dashes, or is a
// short form. It is "" if there is none.
func meant(name string, known []string) string {
	if len(name) > maxParameterName {
		return ""
	}
	plain := plainName(name)
	for _, k := range known {
		if plain == plainName(k) || abbreviations[plain] == k || slices.Contains(shortForms(k), plain) {
			return k
		}
	}
	return ""
}

var nameSeparators = strings.NewReplacer("_", "", "-", "")

// plainName returns a name without what people write differently.
func plainName(name string) string { return nameSeparators.Replace(strings.ToLower(name)) }

// shortForms returns the beginnings of a camel-case name that end with a word, in lower case: sender of senderName.
func shortForms(name string) []string {
	var forms []string
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			forms = append(forms, strings.ToLower(name[:i]))
		}
	}
	return forms
}

// misnamed returns the members of body, which is valid JSON, that dst ignores although a field that body
// lacks has almost the same name: without that field the request would do something else than it says. A
// struct that takes all members (option embed) has none.
func misnamed(body []byte, dst any) apperr.Fields {
	var w nameWalk
	w.value("", reflect.TypeOf(dst), body)
	return w.faults
}

// maxNames bounds the members and elements of a body that are looked at, which takes far longer than decoding
// them: real requests have fewer, and a hostile body of a megabyte would take seconds.
const maxNames = 1_000

type nameWalk struct {
	faults apperr.Fields
	seen   int // members and elements
}

// more reports whether there is another member or element to look at.
func (w *nameWalk) more(d *jsontext.Decoder) bool {
	w.seen++
	return w.seen <= maxNames && len(w.faults) < maxDetails && d.PeekKind() != '}' && d.PeekKind() != ']'
}

func (w *nameWalk) value(path string, t reflect.Type, raw jsontext.Value) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case w.seen >= maxNames || decodesItself(reflect.New(t).Elem()):
	case t.Kind() == reflect.Struct && raw.Kind() == '{':
		w.members(path, t, raw)
	case t.Kind() == reflect.Slice && raw.Kind() == '[':
		w.elements(path, t.Elem(), raw)
	}
}

func (w *nameWalk) elements(path string, t reflect.Type, raw jsontext.Value) {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	_, _ = d.ReadToken() // the bracket
	for i := 0; w.more(d); i++ {
		element, _ := d.ReadValue() // valid JSON
		w.value(path+"["+strconv.Itoa(i)+"]", t, element.Clone())
	}
}

func (w *nameWalk) members(path string, t reflect.Type, raw jsontext.Value) {
	members := w.membersOf(raw)
	fields, takesAll := fieldsOf(t)
	var absent []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		member, ok := members[name]
		if !ok {
			absent = append(absent, name)
			continue
		}
		w.value(join(path, name), fields[name], member)
	}
	if takesAll {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, known := fields[name]; known {
			continue
		}
		if k := meant(name, absent); k != "" && len(w.faults) < maxDetails {
			w.faults.Add(join(path, name), "is not a field of this request ("+join(path, k)+" is)")
		}
	}
}

// membersOf returns the members of an object, none if there are too many.
func (w *nameWalk) membersOf(raw jsontext.Value) map[string]jsontext.Value {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	_, _ = d.ReadToken() // the brace
	members := make(map[string]jsontext.Value)
	for w.more(d) {
		name, _ := d.ReadToken()
		key := name.String() // before the next read
		value, _ := d.ReadValue()
		members[key] = value.Clone()
	}
	if w.seen > maxNames {
		return nil
	}
	return members
}

// fieldsOf returns the types of the members that a struct decodes, by name, and whether it takes all others too.
func fieldsOf(t reflect.Type) (fields map[string]reflect.Type, takesAll bool) {
	fields = make(map[string]reflect.Type)
	for field := range t.Fields() {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() || name == "-":
		case option == "embed":
			takesAll = true
		case field.Anonymous && name == "":
			inner, all := fieldsOf(field.Type)
			maps.Copy(fields, inner)
			takesAll = takesAll || all
		default:
			if name == "" {
				name = field.Name
			}
			fields[name] = field.Type
		}
	}
	return fields, takesAll
}
