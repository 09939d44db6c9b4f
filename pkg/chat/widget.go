package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// Limits of the members of widgetConfigs that the server reads.
const (
	MaxRequiredFields   = 100
	MaxGreetingMessages = 50
)

// WidgetRules are the keys of widgetConfigs that the server enforces.
type WidgetRules struct {
	RequiredFields   []string
	GreetingMessages []Greeting
}

// Greeting is one of an application's greeting messages. An empty one is not shown.
type Greeting struct{ Content string }

// Rules parses the keys of widgetConfigs that the server enforces; unknown keys are the widget's own. It fails if
// [CheckWidgetConfigs] reports faults.
func (a Application) Rules() (WidgetRules, error) {
	r, faults := readWidgetRules(a.WidgetConfigs)
	if len(faults) > 0 {
		return WidgetRules{}, errors.New(faults[0].Field + " " + faults[0].Message)
	}
	return r, nil
}

// CheckWidgetConfigs returns all faults of an application's widgetConfigs: not empty and not a JSON object, or invalid
// keys that the server enforces. It ignores the widget's own keys.
func CheckWidgetConfigs(configs json.RawMessage) []DataFault {
	_, faults := readWidgetRules(configs)
	return faults
}

func readWidgetRules(configs []byte) (r WidgetRules, f dataFaults) {
	const root = "widgetConfigs"
	configs = bytes.TrimSpace(configs)
	switch {
	case len(configs) == 0:
		return r, nil
	case !utf8.Valid(configs) || !json.Valid(configs):
		f.add(root, "must be JSON")
	case !isObject(configs):
		f.add(root, "must be an object")
	default:
		f.each(root+".requiredFields", memberOf(configs, "requiredFields"), MaxRequiredFields, func(at string, item []byte) {
			name := string(contentOf(item))
			if name == "" {
				f.add(at, "must be the name of a field")
			}
			r.RequiredFields = append(r.RequiredFields, name)
		})
		f.each(root+".greetingMessages", memberOf(configs, "greetingMessages"), MaxGreetingMessages, func(at string, item []byte) {
			r.GreetingMessages = append(r.GreetingMessages, f.greeting(at, item))
		})
	}
	return r, f
}

// each calls read with the path and value of each element of a list. An absent or null list has no elements.
func (f *dataFaults) each(path string, list []byte, most int, read func(at string, item []byte)) {
	if isNull(list) {
		return
	}
	if list[0] != '[' {
		f.add(path, "must be an array")
		return
	}
	n := 0
	for item := range elements(list) {
		if n == most {
			f.add(path, "must have at most "+strconv.Itoa(most)+" items")
			return
		}
		read(path+"["+strconv.Itoa(n)+"]", item)
		n++
	}
}

func (f *dataFaults) greeting(at string, item []byte) Greeting {
	if !isObject(item) {
		f.add(at, "must be an object")
		return Greeting{}
	}
	content := memberOf(item, "content")
	switch {
	case isNull(content):
		return Greeting{}
	case content[0] != '"':
		f.add(at+".content", "must be a string")
		return Greeting{}
	}
	text := string(contentOf(content))
	if utf8.RuneCountInString(text) > MaxTextLength {
		f.add(at+".content", "must have at most "+strconv.Itoa(MaxTextLength)+" characters")
	}
	return Greeting{Content: text}
}
