package chat

import (
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

// Fill returns the values of the template's placeholders: the given value, else the recipient's name for
// usernameParameter, else the parameter's default. Faults: an unknown parameter name, no value for a parameter without
// a default, or a text that is too long for a message. A placeholder that is not a parameter may stay empty.
func (t MessageTemplate) Fill(username string, given map[string]string) (filled map[string]string, faults []DataFault) {
	filled, known := t.defaults(), t.names()
	if username != "" && known[usernameParameter] {
		filled[usernameParameter] = username
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			faults = append(faults, DataFault{"parameters." + name, "is not a parameter of the template"})
			continue
		}
		filled[name] = given[name]
	}
	for _, p := range t.Parameters {
		if filled[p.Name] == "" && p.Required() {
			faults = append(faults, DataFault{"parameters." + p.Name, "is required"})
		}
	}
	if len(given) > 0 && utf8.RuneCountInString(t.Render(filled)) > MaxTextLength {
		faults = append(faults, DataFault{"parameters", fmt.Sprintf("must not make the text longer than %d characters", MaxTextLength)})
	}
	return filled, faults
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
	known := make(map[string]bool, len(t.Parameters))
	for _, p := range t.Parameters {
		known[p.Name] = true
	}
	t.walk(func(string) {}, func(name string) { known[name] = true })
	return known
}

// Render replaces the {{name}} placeholders with values, or with the parameters' defaults. A placeholder without a
// value becomes empty: a recipient never sees braces.
func (t MessageTemplate) Render(values map[string]string) string {
	defaults := t.defaults()
	var b strings.Builder
	t.walk(func(text string) { b.WriteString(text) }, func(name string) {
		v, ok := values[name]
		if !ok {
			v = defaults[name]
		}
		b.WriteString(v)
	})
	return b.String()
}

// walk calls text for the text between placeholders, and placeholder with each name, in order. Unclosed braces are
// text.
func (t MessageTemplate) walk(text, placeholder func(string)) {
	rest := t.Text
	for {
		before, after, found := strings.Cut(rest, "{{")
		text(before)
		if !found {
			return
		}
		name, tail, closed := strings.Cut(after, "}}")
		if !closed {
			text("{{" + after)
			return
		}
		placeholder(strings.TrimSpace(name))
		rest = tail
	}
}
