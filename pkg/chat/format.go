package chat

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Format says how a person sees the text of a TEXT message: the member format of its data. Text without one is plain.
// The history and the APIs carry the text as it was sent, whatever its format.
type Format string

const (
	Plain    Format = "plain"    // as it is
	Markdown Format = "markdown" // without its marks, where the message comes from support
)

// FormatRule describes a valid format in an error message.
const FormatRule = "must be one of markdown, plain"

// Valid reports whether f is a known format or empty.
func (f Format) Valid() bool { return f == "" || f == Plain || f == Markdown }

// WithFormat returns the data of a message, a valid JSON object, with a format unless it has one.
func WithFormat(data json.RawMessage, f Format) json.RawMessage {
	object := bytes.TrimSpace(data)
	if !isNull(memberOf(object, "format")) {
		return data
	}
	members := bytes.TrimRight(object[:len(object)-1], " \t\r\n")
	separator := `,`
	if len(members) == 1 {
		separator = ``
	}
	return slices.Concat(members, []byte(separator+`"format":"`+string(f)+`"}`))
}
