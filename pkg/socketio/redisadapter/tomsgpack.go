package redisadapter

// From JSON to MessagePack, in one pass and without a tree: broadcast.go and sharded.go call appendJSON for each event.

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tinylib/msgp/msgp"
)

// errJSON is returned for malformed JSON; broadcasts of the namespace are always well formed.
var errJSON = errors.New("redisadapter: malformed JSON")

// packWriter converts JSON to MessagePack and replaces placeholders by their attachments.
type packWriter struct {
	dst         []byte
	attachments [][]byte
	// exact is true if converting back would yield the same text byte for byte.
	exact bool
}

// value appends the value at the start of text and returns the rest of text.
func (w *packWriter) value(text []byte, depth int) ([]byte, error) {
	text = w.space(text)
	if len(text) == 0 || depth > maxDepth {
		return nil, errJSON
	}
	switch c := text[0]; {
	case c == '{':
		return w.object(text[1:], depth)
	case c == '[':
		return w.array(text[1:], depth)
	case c == '"':
		return w.quoted(text)
	case c == '-' || c >= '0' && c <= '9':
		return w.number(text)
	default:
		return w.literal(text)
	}
}

// space skips white space, which is lost.
func (w *packWriter) space(text []byte) []byte {
	for len(text) > 0 {
		switch text[0] {
		case ' ', '\t', '\n', '\r':
			w.exact = false
			text = text[1:]
		default:
			return text
		}
	}
	return text
}

// literal appends null, true or false.
func (w *packWriter) literal(text []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(text, []byte("null")):
		w.dst = msgp.AppendNil(w.dst)
		return text[4:], nil
	case bytes.HasPrefix(text, []byte("true")):
		w.dst = msgp.AppendBool(w.dst, true)
		return text[4:], nil
	case bytes.HasPrefix(text, []byte("false")):
		w.dst = msgp.AppendBool(w.dst, false)
		return text[5:], nil
	}
	return nil, errJSON
}

// number appends a number as the shortest integer, or as a float as in JavaScript.
func (w *packWriter) number(text []byte) ([]byte, error) {
	n := 0
	for n < len(text) && bytes.IndexByte([]byte("+-.0123456789eE"), text[n]) >= 0 {
		n++
	}
	literal := text[:n]
	rest := text[n:]
	if i, err := strconv.ParseInt(string(literal), 10, 64); err == nil && string(literal) != "-0" {
		w.dst = msgp.AppendInt64(w.dst, i)
		return rest, nil
	}
	if u, err := strconv.ParseUint(string(literal), 10, 64); err == nil {
		w.dst = msgp.AppendUint64(w.dst, u)
		return rest, nil
	}
	f, err := strconv.ParseFloat(string(literal), 64)
	if err != nil && !math.IsInf(f, 0) { // out of range: infinite, as in JavaScript
		return nil, errJSON
	}
	if w.exact {
		var buf [32]byte
		w.exact = bytes.Equal(appendJSONFloat(buf[:0], f), literal)
	}
	w.dst = msgp.AppendFloat64(w.dst, f)
	return rest, nil
}

// quoted appends a string.
func (w *packWriter) quoted(text []byte) ([]byte, error) {
	end, escaped := stringEnd(text)
	if end < 0 {
		return nil, errJSON
	}
	literal := text[:end]
	rest := text[end:]
	if !escaped {
		w.dst = msgp.AppendStringFromBytes(w.dst, literal[1:end-1])
		return rest, nil
	}
	plain, err := jsontext.AppendUnquote(nil, literal)
	if err != nil && len(plain) == 0 {
		return nil, errJSON
	}
	if w.exact {
		again, err := jsontext.AppendQuote(nil, plain)
		w.exact = err == nil && bytes.Equal(again, literal)
	}
	w.dst = msgp.AppendStringFromBytes(w.dst, plain)
	return rest, nil
}

// stringEnd returns the end of the string literal at the start of text.
func stringEnd(text []byte) (end int, escaped bool) {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			return i + 1, escaped
		}
	}
	return -1, escaped
}

// array appends the array whose opening bracket precedes text.
func (w *packWriter) array(text []byte, depth int) ([]byte, error) {
	at := w.open()
	text = w.space(text)
	for n := 0; ; n++ {
		if len(text) == 0 {
			return nil, errJSON
		}
		if text[0] == ']' {
			w.close(at, 0x90, n, msgp.AppendArrayHeader)
			return text[1:], nil
		}
		var err error
		text, err = w.element(text, n)
		if err != nil {
			return nil, err
		}
		text, err = w.value(text, depth+1)
		if err != nil {
			return nil, err
		}
		text = w.space(text)
	}
}

// object appends the object whose opening brace precedes text, or the attachment that it stands for.
func (w *packWriter) object(text []byte, depth int) ([]byte, error) {
	if b, rest, ok := w.placeholder(text); ok {
		w.dst = msgp.AppendBytes(w.dst, b)
		return rest, nil
	}
	at := w.open()
	text = w.space(text)
	for n := 0; ; n++ {
		if len(text) == 0 {
			return nil, errJSON
		}
		if text[0] == '}' {
			w.close(at, 0x80, n, msgp.AppendMapHeader)
			return text[1:], nil
		}
		var err error
		text, err = w.member(text, n)
		if err != nil {
			return nil, err
		}
		text, err = w.value(text, depth+1)
		if err != nil {
			return nil, err
		}
		text = w.space(text)
	}
}

// element skips the comma before every element except the first.
func (w *packWriter) element(text []byte, n int) ([]byte, error) {
	if n == 0 {
		return text, nil
	}
	if text[0] != ',' {
		return nil, errJSON
	}
	text = w.space(text[1:])
	if len(text) == 0 {
		return nil, errJSON
	}
	return text, nil
}

// member appends the name of a member and skips the colon.
func (w *packWriter) member(text []byte, n int) ([]byte, error) {
	text, err := w.element(text, n)
	if err != nil || text[0] != '"' {
		return nil, errJSON
	}
	text, err = w.quoted(text)
	if err != nil {
		return nil, err
	}
	text = w.space(text)
	if len(text) == 0 || text[0] != ':' {
		return nil, errJSON
	}
	return text[1:], nil
}

// placeholder parses the placeholder object of an attachment.
func (w *packWriter) placeholder(text []byte) (attachment, rest []byte, ok bool) {
	const head = `"_placeholder":true,"num":`
	if len(w.attachments) == 0 || !bytes.HasPrefix(text, []byte(head)) {
		return nil, nil, false
	}
	digits, rest, ok := bytes.Cut(text[len(head):], []byte{'}'})
	num, err := strconv.ParseUint(string(digits), 10, 16)
	if !ok || err != nil || num >= uint64(len(w.attachments)) {
		return nil, nil, false
	}
	return w.attachments[num], rest, true
}

// open reserves one byte for the header of a container, enough for 15 elements.
func (w *packWriter) open() (at int) {
	w.dst = append(w.dst, 0)
	return len(w.dst) - 1
}

// close writes the header of a container and inserts bytes if it needs more than one.
func (w *packWriter) close(at int, short byte, n int, appendHead func([]byte, uint32) []byte) {
	if n < 16 {
		w.dst[at] = short | byte(n)
		return
	}
	var buf [5]byte
	head := appendHead(buf[:0], uint32(n))
	w.dst = append(w.dst, head[1:]...)
	copy(w.dst[at+len(head):], w.dst[at+1:len(w.dst)-len(head)+1])
	copy(w.dst[at:], head)
}

// appendJSON appends JSON text converted to MessagePack; exact reports whether converting back would yield
// the same text.
func appendJSON(dst []byte, text json.RawMessage, attachments [][]byte) (out []byte, exact bool, err error) {
	w := &packWriter{dst: dst, attachments: attachments, exact: true}
	rest, err := w.value(text, 0)
	if err != nil {
		return nil, false, err
	}
	if len(w.space(rest)) > 0 {
		return nil, false, errJSON
	}
	return w.dst, w.exact, nil
}
