package chat

import (
	"bytes"
	"encoding/json"
	"iter"
)

// These functions scan valid JSON without copying it: encoding/json matches names regardless of case and decodes
// members that are not needed.

// memberOf returns the value of the object's member with exactly that name, or nil if it has none. Of duplicate names
// the last one counts, as in Go and JavaScript.
func memberOf(object []byte, name string) (value []byte) {
	for key, v := range members(object) {
		if string(key) == name {
			value = v
		}
	}
	return value
}

// members yields the names and values of an object.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		rest := object[1:]
		for {
			rest = skipSeparator(rest)
			if rest[0] == '}' {
				return
			}
			key := valueAt(rest)
			rest = skipSpace(rest[len(key):])
			rest = skipSpace(rest[1:]) // the colon
			v := valueAt(rest)
			if !yield(contentOf(key), v) {
				return
			}
			rest = rest[len(v):]
		}
	}
}

// elements yields the values of an array.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		rest := array[1:]
		for {
			rest = skipSeparator(rest)
			if rest[0] == ']' {
				return
			}
			v := valueAt(rest)
			if !yield(v) {
				return
			}
			rest = rest[len(v):]
		}
	}
}

// valueAt returns the JSON value at the start of json.
func valueAt(json []byte) []byte {
	switch json[0] {
	case '"':
		return json[:stringEnd(json)]
	case '{', '[':
		return json[:nestedEnd(json)]
	}
	if end := bytes.IndexAny(json, " \t\r\n,]}"); end >= 0 {
		return json[:end]
	}
	return json
}

// stringEnd returns the index after the closing quote.
func stringEnd(json []byte) int {
	for i := 1; ; i++ {
		switch json[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// nestedEnd returns the index after the bracket that closes the first one.
func nestedEnd(json []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch json[i] {
		case '"':
			i += stringEnd(json[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

func skipSpace(json []byte) []byte { return bytes.TrimLeft(json, " \t\r\n") }

func skipSeparator(json []byte) []byte { return bytes.TrimLeft(json, " \t\r\n,") }

// contentOf returns the decoded content of a JSON string, in place if it has no escapes, and nil for any other value.
func contentOf(value []byte) []byte {
	if value[0] != '"' {
		return nil
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1]
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return nil
	}
	return []byte(s)
}
