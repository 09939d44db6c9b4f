package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
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
type Greeting struct {
	Content      string
	Translations map[string]string // by language tag, in lower case
}

// In returns the greeting in a language (a BCP 47 tag): the translation for the tag or for the nearest more
// general one, as "pt" for "pt-BR" (RFC 4647, section 3.4), else Content.
func (g Greeting) In(language string) string {
	tag := strings.ToLower(strings.ReplaceAll(language, "_", "-"))
	for tag != "" {
		if text, ok := g.Translations[tag]; ok {
			return text
		}
		tag = tag[:max(0, strings.LastIndexByte(tag, '-'))]
	}
	return g.Content
}

// widgetTexts are the widget's own keys that the OpenAPI documents promise to be texts: colours and addresses
// of pictures.
var widgetTexts = [...]string{
	"primaryBackgroundColor", "primaryTextColor", "inputTextColor", "inputBackgroundColor", "footerBackgroundColor",
	"contentBackgroundColor", "sentMessageBubbleBgColor", "sentMessageBubbleTextColor", "receivedMessageBubbleBgColor",
	"receivedMessageBubbleTextColor", "formBackgroundColor", "aiIconUrl", "widgetIconUrl", "userIconUrl",
}

// Rules parses the keys of widgetConfigs that the server enforces; unknown keys are the widget's own. It fails if
// [CheckWidgetConfigs] reports faults of these keys.
func (a Application) Rules() (WidgetRules, error) {
	r, faults := readWidgetRules(a.WidgetConfigs)
	if len(faults) > 0 {
		return WidgetRules{}, errors.New(faults[0].Field + " " + faults[0].Message)
	}
	return r, nil
}

// CheckWidgetConfigs returns all faults of an application's widgetConfigs: not empty and not a JSON object,
// invalid keys that the server enforces, or keys of the widget with another type than documented. It ignores
// unknown keys.
func CheckWidgetConfigs(configs json.RawMessage) []DataFault {
	_, faults := readWidgetRules(configs)
	if configs = bytes.TrimSpace(configs); len(faults) > 0 || len(configs) == 0 {
		return faults
	}
	for key, value := range members(configs) {
		name, at := string(key), widgetConfigs+"."+string(key)
		switch {
		case slices.Contains(widgetTexts[:], name):
			faults.text(at, value)
		case name == "formInputs":
			faults.each(at, value, MaxRequiredFields, faults.text)
		}
	}
	return faults
}

const widgetConfigs = "widgetConfigs"

func readWidgetRules(configs []byte) (r WidgetRules, f dataFaults) {
	configs = bytes.TrimSpace(configs)
	switch {
	case len(configs) == 0:
		return r, nil
	case !utf8.Valid(configs) || !json.Valid(configs):
		f.add(widgetConfigs, "must be JSON")
	case !isObject(configs):
		f.add(widgetConfigs, "must be an object")
	default:
		f.each(
			widgetConfigs+".requiredFields",
			memberOf(configs, "requiredFields"),
			MaxRequiredFields,
			func(at string, item []byte) {
				name := string(contentOf(item))
				if name == "" {
					f.add(at, "must be the name of a field")
				}
				r.RequiredFields = append(r.RequiredFields, name)
			},
		)
		f.each(
			widgetConfigs+".greetingMessages",
			memberOf(configs, "greetingMessages"),
			MaxGreetingMessages,
			func(at string, item []byte) {
				r.GreetingMessages = append(r.GreetingMessages, f.greeting(at, item))
			},
		)
	}
	return r, f
}

// text adds a fault if a value is not a text.
func (f *dataFaults) text(path string, value []byte) {
	if value[0] != '"' {
		f.add(path, "must be a string")
	}
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
	g := Greeting{Content: f.greetingText(at+".content", memberOf(item, "content"))}
	translations := memberOf(item, "translations")
	switch {
	case isNull(translations):
		return g
	case !isObject(translations):
		f.add(at+".translations", "must be an object")
		return g
	}
	g.Translations = make(map[string]string)
	for tag, text := range members(translations) {
		g.Translations[strings.ToLower(string(tag))] = f.greetingText(at+".translations."+string(tag), text)
	}
	return g
}

// greetingText returns a text of a greeting; empty if it is absent.
func (f *dataFaults) greetingText(at string, value []byte) string {
	switch {
	case isNull(value):
		return ""
	case value[0] != '"':
		f.add(at, "must be a string")
		return ""
	}
	text := string(contentOf(value))
	if utf8.RuneCountInString(text) > MaxTextLength {
		f.add(at, "must have at most "+strconv.Itoa(MaxTextLength)+" characters")
	}
	return text
}
