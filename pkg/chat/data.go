package chat

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"unicode/utf8"
)

// Limits of a message's data. They bound the size of a chat's history and of what a client displays; the OpenAPI
// documents list them. Lengths are in characters (runes).
const (
	MaxDataBytes     = 64 << 10 // the whole of data, as JSON
	MaxVisitorData   = 8 << 10  // the same for visitors, who are anonymous
	MaxTextLength    = 4096     // text, body, caption
	MaxLabelLength   = 256      // title, subtitle, header, footer, names and kinds of files
	MaxPayloadLength = 1024
	MaxURLLength     = 2048
	MaxPhoneLength   = 32
	MaxChoices       = 50
	MaxCards         = 20
	MaxButtons       = 10
)

// DataFault describes an invalid member of a message's data. Field is its path, such as data.choices[1].title.
type DataFault struct {
	Field   string
	Message string
}

// ValidateData returns all faults in the data of a message of type t, in the order of the documentation, or nil. It
// checks only the members defined for the type; others are the sender's own. An optional member that is null counts as
// absent. For an unknown type it only checks that data is an object.
func ValidateData(t MessageType, data json.RawMessage) []DataFault {
	var f dataFaults
	data = skipSpace(data)
	switch {
	case isNull(data):
		f.add("data", "is required")
	case len(data) > MaxDataBytes:
		f.add("data", "must have at most "+strconv.Itoa(MaxDataBytes)+" bytes")
	case !json.Valid(data):
		f.add("data", "must be valid JSON")
	default:
		f.object("data", data, rulesOf(t))
	}
	return f
}

// ValidateObject is [ValidateData] for data that is already known to be a valid JSON object.
func ValidateObject(t MessageType, data json.RawMessage) []DataFault {
	var f dataFaults
	if len(data) > MaxDataBytes {
		f.add("data", "must have at most "+strconv.Itoa(MaxDataBytes)+" bytes")
		return f
	}
	f.object("data", data, rulesOf(t))
	return f
}

// rule constrains one member of an object.
type rule struct {
	name     string
	required bool
	shape    shape
	max      int                      // characters, or items of a list
	items    func() []rule            // rules of a list's items, if all items have the same form
	variants func(kind string) []rule // rules of a list's items by their type; nil: unknown type
}

// shape is the form of a member's value.
type shape uint8

const (
	anyText     shape = iota // a string, possibly empty
	fullText                 // a string with visible characters
	webURL                   // an absolute http or https URL
	phoneNumber              // a phone number
	wholeNumber              // a non-negative integer
	textFormat               // a [Format]
	anyObject                // an object of the sender's own
	objects                  // a list of objects
)

// dataFaults collects faults. Its methods take JSON that is known to be valid.
type dataFaults []DataFault

func (f *dataFaults) add(field, message string) {
	*f = append(*f, DataFault{Field: field, Message: message})
}

func (f *dataFaults) object(path string, value []byte, rules []rule) {
	if !isObject(value) {
		f.add(path, "must be an object")
		return
	}
	for i := range rules {
		f.member(path, rules[i].name, memberOf(value, rules[i].name), &rules[i])
	}
}

// member builds the path only for a fault, so that checking valid data does not allocate.
func (f *dataFaults) member(parent, name string, value []byte, r *rule) {
	switch {
	case isNull(value):
		if r.required {
			f.add(parent+"."+name, "is required")
		}
	case r.shape == objects:
		f.list(parent+"."+name, value, r)
	default:
		if message := r.fault(value); message != "" {
			f.add(parent+"."+name, message)
		}
	}
}

func (f *dataFaults) list(path string, value []byte, r *rule) {
	if value[0] != '[' {
		f.add(path, "must be an array")
		return
	}
	n := 0
	for item := range elements(value) {
		if n++; n > r.max {
			f.add(path, "must have at most "+strconv.Itoa(r.max)+" items")
			return
		}
		at := path + "[" + strconv.Itoa(n-1) + "]"
		if r.variants != nil {
			f.variant(at, item, r.variants)
		} else {
			f.object(at, item, r.items())
		}
	}
	if n == 0 && r.required {
		f.add(path, "must have at least 1 item")
	}
}

// variant checks an object whose rules depend on its type.
func (f *dataFaults) variant(path string, value []byte, variants func(kind string) []rule) {
	if !isObject(value) {
		f.add(path, "must be an object")
		return
	}
	kind := memberOf(value, "type")
	if isNull(kind) {
		f.add(path+".type", "is required")
		return
	}
	rules := variants(string(contentOf(kind)))
	if rules == nil {
		f.add(path+".type", "must be one of reply, url, phone")
		return
	}
	f.object(path, value, rules)
}

// fault returns the fault of a present value; empty: none.
func (r *rule) fault(value []byte) string {
	switch r.shape {
	case wholeNumber:
		return checkWholeNumber(value)
	case anyObject:
		if !isObject(value) {
			return "must be an object"
		}
		return ""
	}
	if value[0] != '"' {
		return "must be a string"
	}
	s := contentOf(value)
	if r.shape != anyText && len(bytes.TrimSpace(s)) == 0 {
		return "must not be empty"
	}
	if utf8.RuneCount(s) > r.max {
		return "must have at most " + strconv.Itoa(r.max) + " characters"
	}
	switch r.shape {
	case textFormat:
		if !Format(s).Valid() {
			return FormatRule
		}
	case webURL:
		return checkURL(string(s))
	case phoneNumber:
		if _, ok := ParsePhone(string(s)); !ok {
			return "must be a phone number: " + PhoneRule
		}
	}
	return ""
}

func checkWholeNumber(value []byte) string {
	if _, err := strconv.ParseUint(string(value), 10, 63); err != nil {
		return "must be a non-negative integer"
	}
	return ""
}

// checkURL keeps javascript: and similar URLs, which a widget might open, out of chats.
func checkURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "must be an http or https URL"
	}
	return ""
}

func isNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

func isObject(value []byte) bool { return value[0] == '{' }
