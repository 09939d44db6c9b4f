package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the parameters of a push. Lengths are in characters.
const (
	MaxParameters          = 50
	MaxParameterNameLength = 64
	MaxParameterLength     = 1024
)

// usernameParameter is the placeholder for the recipient's name. A push may always omit it.
const usernameParameter = "username"

// Filled is a template whose placeholders have values.
type Filled struct {
	Text   string            // at most MaxTextLength characters: the rendering stops there
	Values map[string]string // by placeholder
}

// Fill replaces the {{name}} placeholders with the given value, else with the recipient's name for
// usernameParameter, else with the parameter's default. A placeholder without a value becomes empty: a
// recipient never sees braces. Faults: an unknown parameter name, no value for a parameter without a default,
// or a text that is too long for a message. A placeholder that is not a parameter may stay empty.
func (t MessageTemplate) Fill(username string, given map[string]string) (filled Filled, faults []DataFault) {
	values, known := t.defaults(), t.names()
	if username != "" && known[usernameParameter] {
		values[usernameParameter] = username
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			faults = append(faults, DataFault{"parameters." + name, "is not a parameter of the template"})
			continue
		}
		values[name] = given[name]
	}
	for _, p := range t.Parameters {
		if values[p.Name] == "" && p.Required() {
			faults = append(faults, DataFault{"parameters." + p.Name, "is required"})
		}
	}
	text, fits := t.render(values)
	if !fits {
		faults = append(
			faults,
			DataFault{"parameters", fmt.Sprintf("must not make the text longer than %d characters", MaxTextLength)},
		)
	}
	return Filled{Text: text, Values: values}, faults
}

// templateData is the data of a TEMPLATE message.
type templateData struct {
	TemplateID string            `json:"templateId"`
	Name       string            `json:"name"`
	Text       string            `json:"text"`
	Parameters map[string]string `json:"parameters,omitempty"` // values of the text by placeholder
}

// Data returns the data of the message that the filled template is sent as.
func (t MessageTemplate) Data(f Filled) json.RawMessage {
	data, err := json.Marshal(templateData{TemplateID: t.ID, Name: t.Name, Text: f.Text, Parameters: f.Values})
	if err != nil {
		panic("chat: a struct of strings does not encode: " + err.Error())
	}
	return data
}

// Check returns the faults of the template's size. Other faults depend on what the template is for.
func (t MessageTemplate) Check() (faults []DataFault) {
	if utf8.RuneCountInString(t.Text) > MaxTextLength {
		faults = append(faults, DataFault{"text", fmt.Sprintf("must have at most %d characters", MaxTextLength)})
	}
	if len(t.Parameters) > MaxParameters {
		return append(faults, DataFault{"parameters", fmt.Sprintf("must be at most %d", MaxParameters)})
	}
	for _, p := range t.Parameters {
		switch {
		case !validParameterName(p.Name):
			faults = append(faults, errParameterName)
		case utf8.RuneCountInString(p.Default) > MaxParameterLength:
			message := fmt.Sprintf("must have a default of at most %d characters", MaxParameterLength)
			faults = append(faults, DataFault{"parameters." + p.Name, message})
		}
	}
	return faults
}

// CheckValues returns the faults of the size of a template's values. The valid names depend on the template.
func CheckValues(values map[string]string) (faults []DataFault) {
	if len(values) > MaxParameters {
		return []DataFault{{"parameters", fmt.Sprintf("must have at most %d members", MaxParameters)}}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !validParameterName(name):
			faults = append(faults, errParameterName)
		case utf8.RuneCountInString(values[name]) > MaxParameterLength:
			faults = append(
				faults,
				DataFault{"parameters." + name, fmt.Sprintf("must have at most %d characters", MaxParameterLength)},
			)
		}
	}
	return faults
}

var errParameterName = DataFault{
	"parameters",
	fmt.Sprintf("must have names of 1 to %d characters", MaxParameterNameLength),
}

func validParameterName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= MaxParameterNameLength
}

// Required reports whether a push must set the parameter.
func (p TemplateParameter) Required() bool { return p.Default == "" && p.Name != usernameParameter }

func (t MessageTemplate) defaults() map[string]string {
	values := make(map[string]string, len(t.Parameters)+1)
	for _, p := range t.Parameters {
		values[p.Name] = p.Default
	}
	return values
}

// names returns the template's parameters and the placeholders of its text.
func (t MessageTemplate) names() map[string]bool {
	known := t.Placeholders()
	for _, p := range t.Parameters {
		known[p.Name] = true
	}
	return known
}

// Placeholders returns the names of the placeholders in the text.
func (t MessageTemplate) Placeholders() map[string]bool {
	found := map[string]bool{}
	t.walk(func(string) bool { return true }, func(name string) bool { found[name] = true; return true })
	return found
}

// render replaces the placeholders with values. It writes at most MaxTextLength characters, because a short
// text with many placeholders and long values would fill the memory; fits is false if there are more.
func (t MessageTemplate) render(values map[string]string) (text string, fits bool) {
	var b strings.Builder
	left := MaxTextLength
	write := func(part string) bool {
		n := utf8.RuneCountInString(part)
		if n > left {
			part = firstCharacters(part, left)
		}
		b.WriteString(part)
		left -= n
		return left >= 0
	}
	t.walk(write, func(name string) bool { return write(values[name]) })
	return b.String(), left >= 0
}

// firstCharacters returns the first n characters of a text that has more.
func firstCharacters(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}

// walk calls text for the text between placeholders, and placeholder with each name, in order, until one returns false.
// Unclosed braces are text.
func (t MessageTemplate) walk(text, placeholder func(string) bool) {
	rest := t.Text
	for {
		before, after, found := strings.Cut(rest, "{{")
		if !text(before) || !found {
			return
		}
		name, tail, closed := strings.Cut(after, "}}")
		if !closed {
			text("{{" + after)
			return
		}
		if !placeholder(strings.TrimSpace(name)) {
			return
		}
		rest = tail
	}
}
